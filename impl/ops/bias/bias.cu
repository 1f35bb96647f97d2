// The gradient of a bias on the GPU: a thread adds up the same columns of every row of its block, each row of
// blocks leaves one partial row, and a second kernel adds those in order. No atomics: the same bits at every
// run.
#include "impl/ops/bias/bias_launch.hpp"
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::bias::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int most_threads = 128;

/// Blocks (x, b) have the columns of x and the rows b, b + gridDim.y, ...
template <class T, int width>
__global__ void __launch_bounds__(most_threads)
    partial_kernel(const T* __restrict__ dy, Math<T>* __restrict__ partial, std::int64_t N,
                   std::int64_t out) {
  using V = Vector<T, width>;
  const std::int64_t vector = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (vector >= out / width) return;
  Math<T> sums[width] = {};
#pragma unroll 4
  for (std::int64_t row = blockIdx.y; row < N; row += gridDim.y) {
    const V values = reinterpret_cast<const V*>(dy + row * out)[vector];
#pragma unroll
    for (int k = 0; k < width; ++k) sums[k] += widen(values.element[k]);
  }
  Math<T>* mine = partial + blockIdx.y * out + vector * width;
#pragma unroll
  for (int k = 0; k < width; ++k) mine[k] = sums[k];
}

template <class T, int width>
void backward_as(const BackwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const std::int64_t vectors = a.out / width, rows = a.partial_rows;
  const unsigned threads = threads_for(vectors, most_threads);
  const dim3 blocks(static_cast<unsigned>((vectors + threads - 1) / threads), static_cast<unsigned>(rows));
  partial_kernel<T, width>
      <<<blocks, threads, 0, stream>>>(static_cast<const T*>(a.dy), static_cast<M*>(a.partial), a.N, a.out);
  ASSAY_CUDA_CHECK_LAUNCH();
  add_rows<M>(static_cast<const M*>(a.partial), static_cast<M*>(a.dbias), rows, a.out, stream);
}

}  // namespace

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const bool wide = aligned_16(a.dy, a.out * static_cast<std::int64_t>(sizeof(T)));
    wide ? backward_as<T, full_width<T>>(a, stream) : backward_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::bias::cuda
