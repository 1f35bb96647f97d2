// AdamW over a flat range: gradient, master and moments are read once, written once, 16 bytes at a time.
#include "impl/ops/adamw/adamw_launch.hpp"
#include "impl/ops/cuda_vector.cuh"
#include "spec/ops/adamw/adamw_rounding.hpp"

namespace assay::impl::adamw::cuda {

using namespace assay::impl::cuda;

namespace {

/// Scalars of an update in the state's arithmetic.
template <class S>
struct Scalars {
  S new1;         ///< 1 - beta1, rounded once
  S kept2, new2;  ///< beta2 and 1 - beta2
  S eps, gradient_scale, decay, step_size;
  S root;  ///< 1 / sqrt(1 - beta2^step)
};

/// What changes from step to step, from the device where it is given there: cast as the host does.
template <class S>
__device__ __forceinline__ void take_numbers(Scalars<S>& a, const double* numbers) {
  if (!numbers) return;
  a.decay = static_cast<S>(numbers[0]);
  a.step_size = static_cast<S>(numbers[1]);
  a.root = static_cast<S>(1 / numbers[2]);
}

/// Square root, in fp32 with a relative error of at most 2^-23 (as `reciprocal`).
__device__ __forceinline__ float root_of(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
__device__ __forceinline__ double root_of(double x) { return sqrt(x); }

/// master, m and v of one element, in the order of operations of spec/ops/adamw/adamw.md. In units of 2^-24
/// the root and the reciprocal have an error of 2 each instead of 1. The tolerance has room for both: it
/// counts the roundings of operations that are not fused.
template <class S>
__device__ __forceinline__ void update_element(S& p, S& m, S& v, S g, const Scalars<S>& a) {
  g *= a.gradient_scale;
  p *= a.decay;
  m = fma(a.new1, g - m, m);
  v = fma(a.new2 * g, g, a.kept2 * v);
  p = fma(-a.step_size * m, reciprocal(fma(root_of(v), a.root, a.eps)), p);
}

/// The working weight: bf16 by way of fp32, as everywhere else in the trainer.
template <class W, class S>
__device__ __forceinline__ W rounded_to(S value) {
  if constexpr (sizeof(W) == 2)
    return static_cast<W>(static_cast<float>(value));
  else
    return static_cast<W>(value);
}

template <class W, class S, int width>
__global__ void update_kernel(W* __restrict__ weight, S* __restrict__ master, const S* __restrict__ gradient,
                              S* __restrict__ moment1, S* __restrict__ moment2, std::int64_t n, Scalars<S> a,
                              const double* __restrict__ coefficient, const double* __restrict__ numbers,
                              bool separate) {
  if (coefficient) {
    if (isnan(*coefficient)) return;
    a.gradient_scale = static_cast<S>(*coefficient);
  }
  take_numbers(a, numbers);
  using VS = Vector<S, width>;
  using VW = Vector<W, width>;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n / width;
       i += stride) {
    VS p = reinterpret_cast<VS*>(master)[i], m = reinterpret_cast<VS*>(moment1)[i];
    VS v = reinterpret_cast<VS*>(moment2)[i];
    const VS g = reinterpret_cast<const VS*>(gradient)[i];
    VW w;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      update_element(p.element[k], m.element[k], v.element[k], g.element[k], a);
      w.element[k] = rounded_to<W>(p.element[k]);
    }
    reinterpret_cast<VS*>(master)[i] = p;
    reinterpret_cast<VS*>(moment1)[i] = m;
    reinterpret_cast<VS*>(moment2)[i] = v;
    if (separate) reinterpret_cast<VW*>(weight)[i] = w;
  }
}

/// spec::random::stochastic_bf16 without a branch, for results of arithmetic: their NaN is 0x7fffffff, which
/// stays one when its lower half is cut off.
__device__ __forceinline__ __nv_bfloat16 rounded_by_chance(float value, std::uint16_t random) {
  const std::uint32_t bits = __float_as_uint(value);
  const std::uint32_t raised = fabsf(value) < INFINITY ? bits + random : bits;
  return __ushort_as_bfloat16(static_cast<std::uint16_t>(raised >> 16));
}

/// States in bf16, `width` entries at a time: 1, or an even number where `first` is even. A block of random
/// words serves two entries.
template <int width>
__global__ void update_bf16_kernel(__nv_bfloat16* __restrict__ weight, const float* __restrict__ gradient,
                                   __nv_bfloat16* __restrict__ moment1, __nv_bfloat16* __restrict__ moment2,
                                   std::int64_t n, Scalars<float> a, const double* __restrict__ coefficient,
                                   const double* __restrict__ numbers, std::uint64_t seed, std::uint32_t step,
                                   std::uint64_t first) {
  if (coefficient) {
    if (isnan(*coefficient)) return;
    a.gradient_scale = static_cast<float>(*coefficient);
  }
  take_numbers(a, numbers);
  if (numbers) step = static_cast<std::uint32_t>(numbers[3]);
  const spec::random::Stream rounding = spec::adamw::rounding_stream_of(seed, step);
  using VW = Vector<__nv_bfloat16, width>;
  using VG = Vector<float, width>;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n / width;
       i += stride) {
    VW w = reinterpret_cast<VW*>(weight)[i], m = reinterpret_cast<VW*>(moment1)[i];
    VW v = reinterpret_cast<VW*>(moment2)[i];
    const VG g = reinterpret_cast<const VG*>(gradient)[i];
    const std::uint64_t entry = first + static_cast<std::uint64_t>(i) * width;
    spec::random::Words words{};
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (k % 2 == 0) words = rounding.block((entry + k) / 2);
      const auto bits = spec::adamw::rounding_bits(words, width == 1 ? entry : static_cast<std::uint64_t>(k));
      float p = widen(w.element[k]), mean = widen(m.element[k]), square = widen(v.element[k]);
      update_element(p, mean, square, g.element[k], a);
      w.element[k] = rounded_by_chance(p, bits.parameter);
      m.element[k] = rounded_by_chance(mean, bits.moment1);
      v.element[k] = rounded_by_chance(square, bits.moment2);
    }
    reinterpret_cast<VW*>(weight)[i] = w;
    reinterpret_cast<VW*>(moment1)[i] = m;
    reinterpret_cast<VW*>(moment2)[i] = v;
  }
}

template <class S>
Scalars<S> scalars_of(const Arguments& a) {
  return {.new1 = static_cast<S>(1 - a.beta1),
          .kept2 = static_cast<S>(a.beta2),
          .new2 = static_cast<S>(1 - a.beta2),
          .eps = static_cast<S>(a.eps),
          .gradient_scale = static_cast<S>(a.gradient_scale),
          .decay = static_cast<S>(a.decay),
          .step_size = static_cast<S>(a.step_size),
          .root = static_cast<S>(1 / a.root_correction)};
}

constexpr int threads = 256;
unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(std::min<std::int64_t>((items + threads - 1) / threads, 8192));
}

template <class W, class S, int width>
void launch_as(const Arguments& a, cudaStream_t stream) {
  update_kernel<W, S, width><<<blocks_for(a.n / width), threads, 0, stream>>>(
      static_cast<W*>(a.weight), static_cast<S*>(a.master), static_cast<const S*>(a.gradient),
      static_cast<S*>(a.moment1), static_cast<S*>(a.moment2), a.n, scalars_of<S>(a), a.coefficient, a.numbers,
      a.weight != a.master);
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class W, class S>
void launch_of(const Arguments& a, cudaStream_t stream) {
  constexpr int width = full_width<S>;
  const auto bytes = a.n * static_cast<std::int64_t>(sizeof(S));
  const bool wide = aligned_16(a.master, bytes) && aligned_16(a.gradient, bytes) &&
                    aligned_16(a.moment1, bytes) && aligned_16(a.moment2, bytes) &&
                    reinterpret_cast<std::uintptr_t>(a.weight) % (sizeof(W) * width) == 0;
  wide ? launch_as<W, S, width>(a, stream) : launch_as<W, S, 1>(a, stream);
}

template <int width>
void launch_bf16_as(const Arguments& a, cudaStream_t stream) {
  update_bf16_kernel<width><<<blocks_for(a.n / width), threads, 0, stream>>>(
      static_cast<__nv_bfloat16*>(a.master), static_cast<const float*>(a.gradient),
      static_cast<__nv_bfloat16*>(a.moment1), static_cast<__nv_bfloat16*>(a.moment2), a.n,
      scalars_of<float>(a), a.coefficient, a.numbers, a.seed, a.step, a.first);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_bf16(const Arguments& a, cudaStream_t stream) {
  constexpr int width = full_width<__nv_bfloat16>;
  const auto bytes = a.n * static_cast<std::int64_t>(sizeof(__nv_bfloat16));
  const bool wide = aligned_16(a.master, bytes) && aligned_16(a.moment1, bytes) &&
                    aligned_16(a.moment2, bytes) && a.first % 2 == 0 &&
                    reinterpret_cast<std::uintptr_t>(a.gradient) % (sizeof(float) * width) == 0;
  wide ? launch_bf16_as<width>(a, stream) : launch_bf16_as<1>(a, stream);
}

}  // namespace

void launch(const Arguments& a, cudaStream_t stream) {
  if (a.n == 0) return;
  if (a.state_dtype == Dtype::bf16) return launch_bf16(a, stream);
  const bool rounded = a.weight_dtype == Dtype::bf16;
  if (a.state_dtype == Dtype::f64)
    return rounded ? launch_of<__nv_bfloat16, double>(a, stream) : launch_of<double, double>(a, stream);
  if (rounded) return launch_of<__nv_bfloat16, float>(a, stream);
  return launch_of<float, float>(a, stream);
}

}  // namespace assay::impl::adamw::cuda
