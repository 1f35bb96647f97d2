// Grouped GEMMs by CUTLASS's persistent kernels for Hopper (TMA, warp groups that load and that multiply). A
// first kernel writes each expert's problem from the ends of its rows: the CPU needs no expert's size. The
// weight gradient is added to the buffer by the GEMM's own write-back, in fp32. In FP8, codes are multiplied
// and the product of their scales, which that first kernel computes, is applied in the write-back.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "impl/ops/grouped_linear/grouped_gemm.hpp"

namespace assay::impl::grouped_linear::cuda {
/// A store that adds to what is in memory, where the L2 cache does the addition: the GEMM reads nothing back.
/// One block of threads writes each entry, so the sum has one order. CUTLASS's own adding store lacks `with`,
/// by which its grouped kernels choose the expert's descriptor: these two are its plain store and that with a
/// chosen descriptor, with the adding instruction.
struct AddingStore : cute::SM90_TMA_STORE {};
struct ChosenAddingStore : cute::SM90_TMA_STORE {};
}  // namespace assay::impl::grouped_linear::cuda

template <class Bits>
struct cute::Copy_Traits<assay::impl::grouped_linear::cuda::ChosenAddingStore, Bits> {
  using ThrID = Layout<_1>;
  using SrcLayout = Layout<Shape<_1, Bits>>;
  using DstLayout = SrcLayout;
  using RefLayout = SrcLayout;
  const TmaDescriptor* descriptor;

  template <class TS, class SLayout, class TD, class DLayout>
  CUTE_HOST_DEVICE friend constexpr void copy_unpack(const Copy_Traits& traits,
                                                     const Tensor<TS, SLayout>& from,
                                                     Tensor<TD, DLayout>& to) {
    const void* const descriptor = traits.descriptor;
    const void* const shared = raw_pointer_cast(from.data());
    const auto place = to.data().coord_;
    detail::explode_tuple(detail::CallCOPY<SM90_TMA_REDUCE_ADD>{}, make_tuple(descriptor, shared),
                          seq<0, 1>{}, place, tuple_seq<decltype(place)>{});
  }
};
template <class Bits, class Parameters>
struct cute::Copy_Traits<assay::impl::grouped_linear::cuda::AddingStore, Bits, Parameters>
    : Copy_Traits<SM90_TMA_STORE, Bits, Parameters> {
  CUTE_HOST_DEVICE constexpr Copy_Traits<assay::impl::grouped_linear::cuda::ChosenAddingStore, Bits> with(
      const TmaDescriptor* chosen) const {
    return {chosen};
  }
};

namespace assay::impl::grouped_linear::cuda {

namespace {

using cute::_1;
using cute::_128;
using cute::_2;
using cute::_256;
using Bf16 = cutlass::bfloat16_t;
using E4m3 = cutlass::float_e4m3_t;
using E5m2 = cutlass::float_e5m2_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Problems = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;
using Problem = Problems::UnderlyingProblemShape;

/// Tiles of 128 x 256 by two warp groups together, or of 128 x 128 by one each, so that one multiplies while
/// the other writes: faster where experts have few rows. Measured on H200 (docs/measurements/h200.md).
struct Wide {
  template <class K>
  using Tile = cute::Shape<_128, _256, K>;
  using Cluster = cute::Shape<_2, _1, _1>;
  using Schedule = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using FastFp8 = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperativeFP8FastAccum;
  using EpilogueSchedule = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
struct Narrow {
  template <class K>
  using Tile = cute::Shape<_128, _128, K>;
  using Cluster = cute::Shape<_1, _2, _1>;
  using Schedule = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
  using FastFp8 = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpongFP8FastAccum;
  using EpilogueSchedule = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
};
/// Sums of FP8 products that are moved to fp32 take twice the registers: half of Wide's tile, Narrow's, by
/// both groups.
struct Promoting : Narrow {
  using Schedule = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using EpilogueSchedule = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
constexpr std::int64_t narrow_rows = 2048;  ///< of an expert on average, at most

/// The epilogue of CUTLASS's builder, with the adding store in place of the plain one.
template <class Epilogue>
struct WithAddingStore;
template <class B, class C, class D, class E, class F, class G, class H, class I, class J, class K, class L,
          class M, class N, class O, class P>
struct WithAddingStore<cutlass::epilogue::collective::CollectiveEpilogue<B, C, D, E, F, G, H, I, J, K, L,
                                                                         cute::SM90_TMA_STORE, M, N, O, P>> {
  using type = cutlass::epilogue::collective::CollectiveEpilogue<B, C, D, E, F, G, H, I, J, K, L, AddingStore,
                                                                 M, N, O, P>;
};

/// What is computed, each with kernels of its own.
enum class Kind { forward, input_gradient, weight_gradient, weight_gradient_added };
constexpr bool of_weight(Kind kind) { return kind >= Kind::weight_gradient; }

template <class C, bool fast_fp8>
struct ScheduleOf {
  using type = typename C::Schedule;
};
template <class C>
struct ScheduleOf<C, true> {
  using type = typename C::FastFp8;
};

/// CUTLASS's types of one kind of GEMM, result [M, N] = left [M, K] right [K, N] of each expert. `LayoutLeft`
/// and `LayoutRight` say which axis is contiguous in memory: the last (Row) or the first (Column); results
/// are contiguous along N. `C` says how the work is split: Wide or Narrow. Hopper sums FP8 products in about
/// 14 bits: forward does so throughout, gradients move their sums to fp32 every 128 products.
template <Kind kind, class Left_, class LayoutLeft, class Right_, class LayoutRight, class Result_, class C>
struct Kernels {
  using Left = Left_;
  using Right = Right_;
  using Result = Result_;
  static constexpr bool fp8 = sizeof(Left) == 1;
  using Tile = typename C::template Tile<cute::Int<128 / sizeof(Left)>>;
  using Cluster = typename C::Cluster;
  using Schedule = typename ScheduleOf<C, fp8 && kind == Kind::forward>::type;
  static constexpr int aligned = 128 / cutlass::sizeof_bits<Left>::value;
  static constexpr int aligned_result = 128 / cutlass::sizeof_bits<Result>::value;
  using StoringEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row*, aligned_result, Result, Row*,
      aligned_result, typename C::EpilogueSchedule,
      cutlass::epilogue::fusion::LinearCombination<Result, float, void, float>>::CollectiveOp;
  using Epilogue =
      typename std::conditional_t<kind == Kind::weight_gradient_added, WithAddingStore<StoringEpilogue>,
                                  std::type_identity<StoringEpilogue>>::type;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Left, LayoutLeft*, aligned, Right, LayoutRight*,
      aligned, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      Schedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Problems, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using StrideLeft = typename Kernel::InternalStrideA;
  using StrideRight = typename Kernel::InternalStrideB;
  using StrideResult = typename Kernel::InternalStrideD;
};

template <Kind kind, class Left, class C>
struct KernelsOf : Kernels<kind, Left, Column, Left, Row, float, C> {};
template <class Left, class C>
struct KernelsOf<Kind::forward, Left, C>
    : Kernels<Kind::forward, Left, Row, std::conditional_t<sizeof(Left) == 1, E4m3, Bf16>, Column, Bf16, C> {
};
template <class C>
struct KernelsOf<Kind::input_gradient, Bf16, C>
    : Kernels<Kind::input_gradient, Bf16, Row, Bf16, Row, Bf16, C> {};
/// FP8 GEMMs sum along the contiguous axis of both.
template <class Left, class C>
struct KernelsOf<Kind::input_gradient, Left, C>
    : Kernels<Kind::input_gradient, Left, Row, E4m3, Column, Bf16, C> {};

/// What the kernels read of each expert, arrays [X] behind each other in the scratch.
template <class K>
struct Tables {
  Problem* problems;
  const typename K::Left** left;
  const typename K::Right** right;
  typename K::Result** result;
  float* scale;  ///< [1] of the products
  typename K::StrideLeft* stride_left;
  typename K::StrideRight* stride_right;
  typename K::StrideResult* stride_result;

  static constexpr std::size_t each(std::size_t bytes, std::int64_t X) {
    return (bytes * static_cast<std::size_t>(X) + 255) / 256 * 256;
  }
  static std::size_t bytes(std::int64_t X) {
    return each(sizeof(Problem), X) + 3 * each(sizeof(void*), X) + each(sizeof *stride_left, X) +
           each(sizeof *stride_right, X) + each(sizeof *stride_result, X) + each(sizeof *scale, 1);
  }
  Tables(void* scratch, std::int64_t X) {
    char* at = static_cast<char*>(scratch);
    const auto take = [&](auto& array) {
      array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(at);
      at += each(sizeof *array, X);
    };
    scale = reinterpret_cast<float*>(at);
    at += each(sizeof *scale, 1);
    take(problems), take(left), take(right), take(result);
    take(stride_left), take(stride_right), take(stride_result);
  }
};

/// The stride of a matrix whose rows, in memory, are `row` entries apart.
template <class Stride>
__device__ Stride stride_of(std::int64_t row) {
  Stride stride{};
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(cute::get<0>(stride))>, std::int64_t>)
    cute::get<0>(stride) = row;
  else
    cute::get<1>(stride) = row;
  return stride;
}

/// An expert without rows is a problem without tiles; its weight gradient is 0 where it begins.
template <Kind kind, class K>
__global__ void describe_kernel(Call call, Tables<K> tables) {
  const std::int64_t e = blockIdx.x, in = call.in, out = call.out;
  const std::int32_t begin = e > 0 ? call.ends[e - 1] : 0, rows = call.ends[e] - begin;
  const auto* left = static_cast<const typename K::Left*>(call.left);
  const auto* right = static_cast<const typename K::Right*>(call.right);
  auto* result = static_cast<typename K::Result*>(call.result);
  if constexpr (of_weight(kind)) {
    left += begin * out, right += begin * in, result += e * out * in;
    if (rows == 0 && kind == Kind::weight_gradient)
      for (std::int64_t i = blockIdx.y * blockDim.x + threadIdx.x; i < out * in; i += gridDim.y * blockDim.x)
        result[i] = 0;
  } else {
    const std::int64_t from = kind == Kind::forward ? in : out, to = kind == Kind::forward ? out : in;
    // Of FP8's transposed weights, each an [in, X out], an expert has columns.
    left += begin * from, right += e * out * (K::fp8 && kind == Kind::input_gradient ? 1 : in);
    result += begin * to;
  }
  if (threadIdx.x > 0 || blockIdx.y > 0) return;
  if (K::fp8 && e == 0) *tables.scale = *call.left_scale * *call.right_scale;
  const int I = static_cast<int>(in), O = static_cast<int>(out);
  tables.problems[e] = kind == Kind::forward          ? Problem{rows, O, I}
                       : kind == Kind::input_gradient ? Problem{rows, I, O}
                                                      : Problem{rows > 0 ? O : 0, I, rows};
  tables.left[e] = left, tables.right[e] = right, tables.result[e] = result;
  tables.stride_left[e] = stride_of<typename K::StrideLeft>(kind == Kind::forward ? in : out);
  tables.stride_right[e] =
      stride_of<typename K::StrideRight>(K::fp8 && kind == Kind::input_gradient ? call.X * out : in);
  tables.stride_result[e] = stride_of<typename K::StrideResult>(kind == Kind::forward ? out : in);
}

template <class K>
typename K::Gemm::Arguments arguments(const Call& call, const Tables<K>& t) {
  using Arguments = typename K::Gemm::Arguments;
  static const cutlass::KernelHardwareInfo device = [] {
    cutlass::KernelHardwareInfo info;
    ASSAY_CUDA_CHECK(cudaGetDevice(&info.device_id));
    info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(info.device_id);
    return info;
  }();
  Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
  arguments.problem_shape = {static_cast<int>(call.X), t.problems, nullptr};
  arguments.mainloop = {t.left, t.stride_left, t.right, t.stride_right};
  arguments.hw_info = device;
  arguments.epilogue.thread.alpha = 1.0f;
  if (K::fp8) arguments.epilogue.thread.alpha_ptr = t.scale;
  arguments.epilogue.thread.beta = 0.0f;
  arguments.epilogue.ptr_D = t.result;
  arguments.epilogue.dD = t.stride_result;
  return arguments;
}

/// Calls `run` with the kind, as a constant, and the kernels of the call.
template <Kind kind, class Left = Bf16, class Do>
auto with_tiles(const Call& call, const Do& run) {
  const std::integral_constant<Kind, kind> constant;
  return call.R <= call.X * narrow_rows ? run(constant, KernelsOf<kind, Left, Narrow>{})
                                        : run(constant, KernelsOf<kind, Left, Wide>{});
}
template <class Do>
auto with_kernels(const Call& call, const Do& run) {
  switch (call.part) {
    case Part::forward:
      return call.left_type == Type::e4m3 ? with_tiles<Kind::forward, E4m3>(call, run)
                                          : with_tiles<Kind::forward>(call, run);
    case Part::input_gradient:
      if (call.left_type == Type::e5m2)
        return run(std::integral_constant<Kind, Kind::input_gradient>{},
                   KernelsOf<Kind::input_gradient, E5m2, Promoting>{});
      return with_tiles<Kind::input_gradient>(call, run);
    default:
      return call.adds ? with_tiles<Kind::weight_gradient_added>(call, run)
                       : with_tiles<Kind::weight_gradient>(call, run);
  }
}

void check(cutlass::Status status, const char* what) {
  if (status != cutlass::Status::kSuccess)
    throw UserError(ExitCode::bug, std::string("CUTLASS refused a grouped GEMM (") + what +
                                       "): " + cutlass::cutlassGetStatusString(status));
}

}  // namespace

bool available() {
  int device = 0, major = 0, minor = 0;
  ASSAY_CUDA_CHECK(cudaGetDevice(&device));
  ASSAY_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  ASSAY_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

std::size_t scratch_bytes(const Call& call) {
  return with_kernels(call, [&](auto, auto kernels) {
    using K = decltype(kernels);
    return Tables<K>::bytes(call.X) +
           K::Gemm::get_workspace_size(arguments<K>(call, Tables<K>(nullptr, call.X)));
  });
}

void launch(const Call& call, void* scratch, cudaStream_t stream) {
  with_kernels(call, [&](auto kind, auto kernels) {
    using K = decltype(kernels);
    const Tables<K> tables(scratch, call.X);
    describe_kernel<decltype(kind)::value, K>
        <<<dim3(static_cast<unsigned>(call.X), of_weight(kind) ? 32 : 1), 256, 0, stream>>>(call, tables);
    ASSAY_CUDA_CHECK_LAUNCH();
    typename K::Gemm gemm;
    check(gemm.initialize(arguments<K>(call, tables), static_cast<char*>(scratch) + Tables<K>::bytes(call.X),
                          stream),
          "initialize");
    check(gemm.run(stream), "run");
  });
}

}  // namespace assay::impl::grouped_linear::cuda
