// Sum over ranks of the parts copied from them: each number is read once and written once.
#include "impl/comm/peer/rank_sum_launch.hpp"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::rank_sum::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int threads = 256;
/// More than enough to keep the memory busy, few beside the blocks of a GEMM.
constexpr std::int64_t most_blocks = 512;

/// Numbers of a rank, of which each thread reads and writes `width` at a time. `sum` may be `own`, so neither
/// is restricted: each thread reads what it writes.
template <class T, int width>
__global__ void sum_kernel(const T* own, const T* __restrict__ others, T* sum, std::int64_t n, int rank,
                           int ranks) {
  using V = Vector<T, width>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads, vectors = n / width;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < vectors;
       i += step) {
    const auto of = [&](int r) {
      return r == rank ? reinterpret_cast<const V*>(own)[i]
                       : reinterpret_cast<const V*>(others + (r < rank ? r : r - 1) * n)[i];
    };
    const V first = of(0);
    Math<T> total[width];
#pragma unroll
    for (int k = 0; k < width; ++k) total[k] = widen(first.element[k]);
    for (int r = 1; r < ranks; ++r) {
      const V next = of(r);
#pragma unroll
      for (int k = 0; k < width; ++k) total[k] += widen(next.element[k]);
    }
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) out.element[k] = narrow<T>(total[k]);
    reinterpret_cast<V*>(sum)[i] = out;
  }
}

template <class T, int width>
void launch_of(std::int64_t n, int rank, int ranks, const T* own, const T* others, T* sum,
               cudaStream_t stream) {
  const std::int64_t blocks = std::min((n / width + threads - 1) / threads, most_blocks);
  sum_kernel<T, width>
      <<<static_cast<unsigned>(blocks), threads, 0, stream>>>(own, others, sum, n, rank, ranks);
}

}  // namespace

void launch(Dtype dtype, std::int64_t n, int rank, int ranks, const void* own, const void* others, void* sum,
            cudaStream_t stream) {
  if (n == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    const auto *mine = static_cast<const T*>(own), *theirs = static_cast<const T*>(others);
    auto* to = static_cast<T*>(sum);
    // Whole vectors: the parts lie one behind the other, so that each begins where a vector does.
    if (n % full_width<T> == 0 && aligned_16(mine, 16) && aligned_16(theirs, 16) && aligned_16(to, 16))
      launch_of<T, full_width<T>>(n, rank, ranks, mine, theirs, to, stream);
    else
      launch_of<T, 1>(n, rank, ranks, mine, theirs, to, stream);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::rank_sum::cuda
