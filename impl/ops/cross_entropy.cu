// cross_entropy on the GPU: one block per row. Forward keeps a running maximum and sum per thread, so that a
// row is read once.
#include <cmath>

#include "impl/ops/cross_entropy_launch.hpp"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::cross_entropy::cuda {

using namespace assay::impl::cuda;

namespace {

/// exp(x - top) summed over some entries: sum relative to the largest of them.
template <class M>
struct Running {
  M top, sum;
};

/// The two merged. An empty one has top = -infinity and sum = 0; two empty ones must not give NaN.
template <class M>
__device__ Running<M> merged(Running<M> a, Running<M> b) {
  if (a.top < b.top) {
    const Running<M> swap = a;
    a = b, b = swap;
  }
  if (b.sum != 0) a.sum += b.sum * exp(b.top - a.top);
  return a;
}

/// Of all threads of the block, on every thread, in a fixed order.
template <class M>
__device__ Running<M> block_merged(Running<M> mine, Running<M>* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const Running<M> other{__shfl_down_sync(0xffffffffu, mine.top, offset),
                           __shfl_down_sync(0xffffffffu, mine.sum, offset)};
    mine = merged(mine, other);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (lane == 0) scratch[warp] = mine;
  __syncthreads();
  Running<M> all = scratch[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) all = merged(all, scratch[w]);
  return all;
}

template <class T, int width>
__global__ void forward_kernel(const T* __restrict__ logits, const std::int64_t* __restrict__ targets,
                               Math<T>* __restrict__ lse, double* __restrict__ terms, std::int64_t N,
                               std::int64_t V, std::int64_t apart, std::int64_t ignore) {
  using M = Math<T>;
  using Vec = Vector<T, width>;
  __shared__ Running<M> scratch[32];
  const std::int64_t row = blockIdx.x;
  const T* logit = logits + row * apart;
  const Vec* values = reinterpret_cast<const Vec*>(logit);
  Running<M> mine{static_cast<M>(-INFINITY), M(0)};
  for (std::int64_t i = threadIdx.x; i < V / width; i += blockDim.x) {
    const Vec v = values[i];
    M top = mine.top;
#pragma unroll
    for (int k = 0; k < width; ++k) top = max(top, widen(v.element[k]));
    M sum = mine.sum != 0 ? mine.sum * exp(mine.top - top) : M(0);
#pragma unroll
    for (int k = 0; k < width; ++k) sum += exp(widen(v.element[k]) - top);
    mine = {top, sum};
  }
  for (std::int64_t v = V / width * width + threadIdx.x; v < V; v += blockDim.x)
    mine = merged(mine, Running<M>{widen(logit[v]), M(1)});
  const Running<M> all = block_merged(mine, scratch);
  if (threadIdx.x > 0) return;
  const M result = all.top + log(all.sum);
  lse[row] = result;
  const std::int64_t target = targets[row];
  const bool valid = target != ignore;
  const double exact = static_cast<double>(result);
  terms[row] = valid ? exact - static_cast<double>(widen(logit[target])) : 0;
  terms[N + row] = valid ? exact * exact : 0;
}

template <class T, int width>
__global__ void backward_kernel(T* __restrict__ logits, const std::int64_t* __restrict__ targets,
                                const Math<T>* __restrict__ lse, std::int64_t V, std::int64_t apart,
                                std::int64_t ignore, const double* __restrict__ normalizer, Math<T> z) {
  using M = Math<T>;
  using Vec = Vector<T, width>;
  const M share = static_cast<M>(1 / *normalizer);
  const std::int64_t row = blockIdx.x, target = targets[row];
  T* logit = logits + row * apart;
  Vec* values = reinterpret_cast<Vec*>(logit);
  const bool valid = target != ignore;
  const M shift = lse[row], factor = share * (M(1) + M(2) * z * shift);
  const auto gradient_of = [&](T value, std::int64_t entry) {
    M gradient = valid ? exp(widen(value) - shift) * factor : M(0);
    if (entry == target) gradient -= share;
    return narrow<T>(gradient);
  };
  for (std::int64_t i = threadIdx.x; i < V / width; i += blockDim.x) {
    Vec v = values[i];
#pragma unroll
    for (int k = 0; k < width; ++k) v.element[k] = gradient_of(v.element[k], i * width + k);
    values[i] = v;
  }
  for (std::int64_t v = V / width * width + threadIdx.x; v < V; v += blockDim.x)
    logit[v] = gradient_of(logit[v], v);
}

constexpr int most_threads = 512;

}  // namespace

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    const auto* logits = static_cast<const T*>(a.logits);
    auto* lse = static_cast<M*>(a.lse);
    constexpr int width = full_width<T>;
    const auto rows = static_cast<unsigned>(a.N);
    if (aligned_16(logits, a.apart * static_cast<std::int64_t>(sizeof(T))))
      forward_kernel<T, width><<<rows, threads_for(a.V / width, most_threads), 0, stream>>>(
          logits, a.targets, lse, a.terms, a.N, a.V, a.apart, a.ignore);
    else
      forward_kernel<T, 1><<<rows, threads_for(a.V, most_threads), 0, stream>>>(
          logits, a.targets, lse, a.terms, a.N, a.V, a.apart, a.ignore);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    auto* logits = static_cast<T*>(a.logits);
    const auto* lse = static_cast<const M*>(a.lse);
    const auto z = static_cast<M>(a.z);
    constexpr int width = full_width<T>;
    const auto rows = static_cast<unsigned>(a.N);
    if (aligned_16(logits, a.apart * static_cast<std::int64_t>(sizeof(T))))
      backward_kernel<T, width><<<rows, threads_for(a.V / width, most_threads), 0, stream>>>(
          logits, a.targets, lse, a.V, a.apart, a.ignore, a.normalizer, z);
    else
      backward_kernel<T, 1><<<rows, threads_for(a.V, most_threads), 0, stream>>>(
          logits, a.targets, lse, a.V, a.apart, a.ignore, a.normalizer, z);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::cross_entropy::cuda
