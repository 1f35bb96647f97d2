// cross_entropy on the GPU: one block per row. Forward keeps a running maximum and sum per thread, so that a
// row is read once; the gradient that follows at once finds the row in the cache.
#include <cmath>
#include <type_traits>

#include "impl/ops/cross_entropy/cross_entropy_launch.hpp"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::cross_entropy::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int most_threads = 1024, loads_ahead = 4;
/// Rows of more bytes get most_threads, others half of them: of those four blocks at most share an
/// SM (in bf16 registers leave two).
constexpr std::int64_t long_row = 128 << 10;
constexpr std::int64_t most_blocks = 4;

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
  if (b.sum != 0) a.sum += b.sum * exponential(b.top - a.top);
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

/// Of the thread's entries of a row: thread i has vectors i, i + threads and so on.
template <class T, int width>
__device__ Running<Math<T>> thread_sum(const T* logit, const RowArguments& rows) {
  using M = Math<T>;
  using Vec = Vector<T, width>;
  const Vec* values = reinterpret_cast<const Vec*>(logit);
  const std::int64_t V = rows.V, vectors = V / width, threads = blockDim.x;
  Running<M> mine{static_cast<M>(-INFINITY), M(0)};
  for (std::int64_t i = threadIdx.x; i < vectors; i += loads_ahead * threads) {
    Held<T, width> held[loads_ahead];
#pragma unroll
    for (int ahead = 0; ahead < loads_ahead; ++ahead)
      if (i + ahead * threads < vectors) held[ahead].load(values + i + ahead * threads);
#pragma unroll
    for (int ahead = 0; ahead < loads_ahead; ++ahead) {
      if (i + ahead * threads >= vectors) break;
      const Vec v = held[ahead].open();
      M top = mine.top;
#pragma unroll
      for (int k = 0; k < width; ++k) top = max(top, widen(v.element[k]));
      M sum = mine.sum != 0 ? mine.sum * exponential(mine.top - top) : M(0);
#pragma unroll
      for (int k = 0; k < width; ++k) sum += exponential(widen(v.element[k]) - top);
      mine = {top, sum};
    }
  }
  for (std::int64_t v = vectors * width + threadIdx.x; v < V; v += threads)
    mine = merged(mine, Running<M>{widen(logit[v]), M(1)});
  return mine;
}

/// What a row adds to the sums of the losses.
__device__ void write_terms(double* terms, std::int64_t N, std::int64_t row, bool valid, double lse,
                            double of_target) {
  terms[row] = valid ? lse - of_target : 0;
  terms[N + row] = valid ? lse * lse : 0;
}

/// The row's log-sum-exp on every thread. The first writes it and the row's terms of the sums.
template <class T, int width>
__device__ Math<T> row_forward(const ForwardArguments& a, const T* logit, std::int64_t target) {
  using M = Math<T>;
  __shared__ Running<M> scratch[32];
  const std::int64_t row = blockIdx.x;
  const bool valid = target != a.rows.ignore, writes = threadIdx.x == 0;
  // Read before the threads meet, after which a gradient may be written over it.
  const double of_target = valid && writes ? static_cast<double>(widen(logit[target])) : 0;
  const Running<M> all = block_merged(thread_sum<T, width>(logit, a.rows), scratch);
  const M lse = all.top + log(all.sum);
  if (!writes) return lse;
  static_cast<M*>(a.lse)[row] = lse;
  write_terms(a.terms, a.rows.N, row, valid, static_cast<double>(lse), of_target);
  return lse;
}

/// Writes the row's gradient over it, what the thread has read last first: that is still in the cache.
template <class T, int width>
__device__ void row_backward(T* logit, std::int64_t target, Math<T> lse, const RowArguments& rows,
                             double normalizer) {
  using M = Math<T>;
  using Vec = Vector<T, width>;
  const std::int64_t V = rows.V;
  const bool valid = target != rows.ignore;
  const M share = static_cast<M>(1 / normalizer),
          factor = share * (M(1) + M(2) * static_cast<M>(rows.of.z) * lse);
  const auto gradient_of = [&](T value, std::int64_t entry) {
    M gradient = valid ? exponential(widen(value) - lse) * factor : M(0);
    if (entry == target) gradient -= share;
    return narrow<T>(gradient);
  };
  Vec* values = reinterpret_cast<Vec*>(logit);
  const std::int64_t vectors = V / width, threads = blockDim.x, first = threadIdx.x;
  for (std::int64_t v = vectors * width + first; v < V; v += threads) logit[v] = gradient_of(logit[v], v);
  if (first >= vectors) return;
  for (std::int64_t i = first + (vectors - 1 - first) / threads * threads; i >= 0;
       i -= loads_ahead * threads) {
    Held<T, width> held[loads_ahead];
#pragma unroll
    for (int ahead = 0; ahead < loads_ahead; ++ahead)
      if (i >= ahead * threads) held[ahead].load(values + i - ahead * threads);
#pragma unroll
    for (int ahead = 0; ahead < loads_ahead; ++ahead) {
      const std::int64_t at = i - ahead * threads;
      if (at < 0) break;
      Vec v = held[ahead].open();
#pragma unroll
      for (int k = 0; k < width; ++k) v.element[k] = gradient_of(v.element[k], at * width + k);
      values[at] = v;
    }
  }
}

template <class T, int width>
__global__ void __launch_bounds__(most_threads) forward_kernel(const ForwardArguments a) {
  const std::int64_t row = blockIdx.x;
  row_forward<T, width>(a, static_cast<const T*>(a.rows.logits) + row * a.rows.apart, a.rows.targets[row]);
}

template <class T, int width>
__global__ void __launch_bounds__(most_threads) partial_kernel(const PartialArguments a) {
  using M = Math<T>;
  __shared__ Running<M> scratch[32];
  const std::int64_t row = blockIdx.x, target = a.rows.targets[row];
  const T* logit = static_cast<const T*>(a.rows.logits) + row * a.rows.apart;
  const Running<M> all = block_merged(thread_sum<T, width>(logit, a.rows), scratch);
  if (threadIdx.x > 0) return;
  static_cast<M*>(a.top)[row] = all.top;
  static_cast<M*>(a.sum)[row] = all.sum;
  static_cast<M*>(a.of_target)[row] = target >= 0 ? widen(logit[target]) : M(0);
}

/// One thread per row.
template <class M>
__global__ void combine_kernel(const CombineArguments a) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= a.N) return;
  const M lse = static_cast<const M*>(a.top)[row] + log(static_cast<const M*>(a.sum)[row]);
  static_cast<M*>(a.lse)[row] = lse;
  write_terms(a.terms, a.N, row, a.targets[row] != a.ignore, static_cast<double>(lse),
              static_cast<double>(static_cast<const M*>(a.of_target)[row]));
}

template <class T, int width>
__global__ void __launch_bounds__(most_threads) backward_kernel(const BackwardArguments a) {
  const std::int64_t row = blockIdx.x;
  row_backward<T, width>(static_cast<T*>(a.logits) + row * a.rows.apart, a.rows.targets[row],
                         static_cast<const Math<T>*>(a.lse)[row], a.rows, *a.normalizer);
}

template <class T, int width>
__global__ void __launch_bounds__(most_threads)
    forward_backward_kernel(const ForwardArguments a, T* logits, const double* normalizer) {
  const std::int64_t row = blockIdx.x, target = a.rows.targets[row];
  T* logit = logits + row * a.rows.apart;
  const Math<T> lse = row_forward<T, width>(a, logit, target);
  row_backward<T, width>(logit, target, lse, a.rows, *normalizer);
}

/// Shared memory that a block asks for and does not use, so that no more rows are under way on the GPU than
/// half of its L2 cache holds, but one to an SM at least: backward then finds in the cache what fits.
std::size_t bytes_kept_idle(std::int64_t row_bytes) {
  int device = 0, processors = 0, cache = 0, shared = 0;
  ASSAY_CUDA_CHECK(cudaGetDevice(&device));
  ASSAY_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  ASSAY_CUDA_CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  ASSAY_CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const std::int64_t blocks = cache / 2 / (processors * row_bytes);  // of an SM
  if (blocks >= most_blocks) return 0;
  // Of an SM's shared memory a block leaves 1 KB to the system, and the sums of warps take one.
  return static_cast<std::size_t>(shared) / static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1)) -
         2048;
}

/// Calls `launch` with an element, whether rows can be moved in vectors, and the threads of a block.
template <class Launch>
void with_rows(const RowArguments& a, const Launch& launch) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
    const int most = a.V * bytes > long_row ? most_threads : most_threads / 2;
    if (aligned_16(a.logits, a.apart * bytes))
      launch(element, std::integral_constant<int, width>{}, threads_for(a.V / width, most));
    else
      launch(element, std::integral_constant<int, 1>{}, threads_for(a.V, most));
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  with_rows(a.rows, [&](auto element, auto width, unsigned threads) {
    forward_kernel<decltype(element), width.value>
        <<<static_cast<unsigned>(a.rows.N), threads, 0, stream>>>(a);
  });
}

void launch_partial(const PartialArguments& a, cudaStream_t stream) {
  with_rows(a.rows, [&](auto element, auto width, unsigned threads) {
    partial_kernel<decltype(element), width.value>
        <<<static_cast<unsigned>(a.rows.N), threads, 0, stream>>>(a);
  });
}

void launch_combine(const CombineArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  constexpr unsigned threads = 128;
  with_element(a.dtype, [&](auto element) {
    using M = Math<decltype(element)>;
    combine_kernel<M><<<static_cast<unsigned>((a.N + threads - 1) / threads), threads, 0, stream>>>(a);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  with_rows(a.rows, [&](auto element, auto width, unsigned threads) {
    backward_kernel<decltype(element), width.value>
        <<<static_cast<unsigned>(a.rows.N), threads, 0, stream>>>(a);
  });
}

void launch_forward_backward(const ForwardArguments& a, void* logits, const double* normalizer,
                             cudaStream_t stream) {
  with_rows(a.rows, [&](auto element, auto width, unsigned threads) {
    using T = decltype(element);
    const auto kernel = forward_backward_kernel<T, width.value>;
    const std::size_t idle = bytes_kept_idle(a.rows.V * static_cast<std::int64_t>(sizeof(T)));
    ASSAY_CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(idle)));
    kernel<<<static_cast<unsigned>(a.rows.N), threads, idle, stream>>>(a, static_cast<T*>(logits),
                                                                       normalizer);
  });
}

}  // namespace assay::impl::cross_entropy::cuda
