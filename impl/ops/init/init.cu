// Normal numbers on the GPU with the bits of the CPU: compiled without fused multiply-adds.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/init/init_launch.hpp"
#include "spec/random/box_muller.hpp"

namespace assay::impl::init::cuda {

using namespace assay::impl::cuda;

namespace {
template <class T>
__global__ void normal_kernel(T* __restrict__ values, const Arguments a) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.n;
       i += stride) {
    const spec::random::Words words =
        a.numbers.block(static_cast<std::uint64_t>(a.first + i / a.row * a.apart + i % a.row));
    const double normal = __dsqrt_rn(spec::random::squared_radius(words)) * spec::random::direction(words);
    values[i] = narrow<T>(static_cast<Math<T>>(a.scale * normal));
  }
}
}  // namespace

void launch(const Arguments& a, cudaStream_t stream) {
  if (a.n == 0) return;
  constexpr int threads = 256;
  const std::int64_t blocks = std::min<std::int64_t>((a.n + threads - 1) / threads, 8192);
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    normal_kernel<T><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(static_cast<T*>(a.values), a);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::init::cuda
