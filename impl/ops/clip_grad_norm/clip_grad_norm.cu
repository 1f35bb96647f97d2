// Sum of squares on the GPU in fp64: a fixed number of blocks, each with a fixed share of the gradient.
#include "impl/ops/clip_grad_norm/clip_grad_norm_launch.hpp"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::clip_grad_norm::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int threads = 512;

template <class T, int width>
__global__ void partial_kernel(const T* __restrict__ gradient, std::int64_t n, double* __restrict__ partial) {
  using V = Vector<T, width>;
  __shared__ double scratch[33];
  constexpr std::int64_t stride = static_cast<std::int64_t>(partials) * threads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  double sum = 0;
  for (std::int64_t i = first; i < n / width; i += stride) {
    const V v = reinterpret_cast<const V*>(gradient)[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const auto value = static_cast<double>(widen(v.element[k]));
      sum += value * value;
    }
  }
  const std::int64_t rest = n / width * width + first;  // at most width - 1 entries are left
  if (rest < n)
    sum += static_cast<double>(widen(gradient[rest])) * static_cast<double>(widen(gradient[rest]));
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void total_kernel(const double* __restrict__ partial, double* __restrict__ total) {
  __shared__ double scratch[33];
  const double sum = block_sum(partial[threadIdx.x], scratch);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace

void launch_sum_of_squares(Dtype dtype, std::int64_t n, const void* gradient, double* partial, double* sum,
                           cudaStream_t stream) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    const auto* g = static_cast<const T*>(gradient);
    if (aligned_16(g, 16))
      partial_kernel<T, full_width<T>><<<partials, threads, 0, stream>>>(g, n, partial);
    else
      partial_kernel<T, 1><<<partials, threads, 0, stream>>>(g, n, partial);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
  total_kernel<<<1, partials, 0, stream>>>(partial, sum);
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::clip_grad_norm::cuda
