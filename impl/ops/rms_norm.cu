// rms_norm on the GPU. Forward: one block per row. Backward: a thread keeps the same columns over all rows of
// its block, so the gain's gradient is summed in registers; each block leaves one partial row, and a second
// kernel adds those in order. No atomics: the same bits at every run.
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/rms_norm_launch.hpp"

namespace assay::impl::rms_norm::cuda {

using namespace assay::impl::cuda;

namespace {

/// Most threads of a block, and most vectors that one of them keeps in registers.
constexpr int most_threads = 512, most_vectors = 4;

template <class T, int width>
__global__ void forward_kernel(const T* __restrict__ x, const T* __restrict__ gain, T* __restrict__ y,
                               Math<T>* __restrict__ rstd, std::int64_t D, Math<T> eps) {
  using M = Math<T>;
  using V = Vector<T, width>;
  __shared__ M scratch[33];
  const std::int64_t row = blockIdx.x, vectors = D / width;
  const V* xs = reinterpret_cast<const V*>(x + row * D);
  M squares = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const V v = xs[i];
#pragma unroll
    for (int k = 0; k < width; ++k) squares += widen(v.element[k]) * widen(v.element[k]);
  }
  const M r = M(1) / sqrt(block_sum(squares, scratch) / M(D) + eps);
  const V* gs = reinterpret_cast<const V*>(gain);
  V* ys = reinterpret_cast<V*>(y + row * D);
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const V v = xs[i], g = gs[i];  // x comes from the cache the second time
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) out.element[k] = narrow<T>(widen(v.element[k]) * r * widen(g.element[k]));
    ys[i] = out;
  }
  if (threadIdx.x == 0) rstd[row] = r;
}

/// Block b handles rows b, b + gridDim.x, ...; thread t the vectors t, t + blockDim.x, ... of each.
template <class T, int width, int count>
__global__ void __launch_bounds__(most_threads)
    backward_kernel(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ gain,
                    const Math<T>* __restrict__ rstd, T* __restrict__ dx, Math<T>* __restrict__ partial,
                    std::int64_t N, std::int64_t D) {
  using M = Math<T>;
  using V = Vector<T, width>;
  __shared__ M scratch[33];
  const std::int64_t vectors = D / width;
  M sums[count][width] = {};
  V gains[count];
#pragma unroll
  for (int c = 0; c < count; ++c) {
    const std::int64_t i = threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x;
    if (i < vectors) gains[c] = reinterpret_cast<const V*>(gain)[i];
  }
  for (std::int64_t row = blockIdx.x; row < N; row += gridDim.x) {
    const V *xs = reinterpret_cast<const V*>(x + row * D), *dys = reinterpret_cast<const V*>(dy + row * D);
    V* dxs = reinterpret_cast<V*>(dx + row * D);
    const M r = rstd[row];
    V own_x[count], own_dy[count], own_dx[count];
#pragma unroll
    for (int c = 0; c < count; ++c) {
      const std::int64_t i = threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x;
      if (i < vectors) own_x[c] = xs[i], own_dy[c] = dys[i], own_dx[c] = dxs[i];
    }
    M projection = 0;
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x >= vectors) continue;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M product = widen(own_dy[c].element[k]) * (widen(own_x[c].element[k]) * r);
        sums[c][k] += product;
        projection += product * widen(gains[c].element[k]);
      }
    }
    projection = block_sum(projection, scratch) / M(D);
#pragma unroll
    for (int c = 0; c < count; ++c) {
      const std::int64_t i = threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x;
      if (i >= vectors) continue;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M own = r * (widen(own_dy[c].element[k]) * widen(gains[c].element[k]) -
                           widen(own_x[c].element[k]) * r * projection);
        own_dx[c].element[k] = narrow<T>(widen(own_dx[c].element[k]) + own);
      }
      dxs[i] = own_dx[c];
    }
  }
  M* mine = partial + static_cast<std::int64_t>(blockIdx.x) * D;
#pragma unroll
  for (int c = 0; c < count; ++c) {
    const std::int64_t i = threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x;
    if (i >= vectors) continue;
#pragma unroll
    for (int k = 0; k < width; ++k) mine[i * width + k] = sums[c][k];
  }
}

template <class T, int width>
void forward_as(const ForwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  forward_kernel<T, width><<<static_cast<unsigned>(a.N), threads_for(a.D / width), 0, stream>>>(
      static_cast<const T*>(a.x), static_cast<const T*>(a.gain), static_cast<T*>(a.y),
      static_cast<M*>(a.rstd), a.D, static_cast<M>(a.eps));
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T, int width, int count>
void backward_of_count(const BackwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const std::int64_t vectors = a.D / width;
  const auto blocks = static_cast<unsigned>(partial_rows(a.N));
  backward_kernel<T, width, count>
      <<<blocks, threads_for((vectors + count - 1) / count, most_threads), 0, stream>>>(
          static_cast<const T*>(a.dy), static_cast<const T*>(a.x), static_cast<const T*>(a.gain),
          static_cast<const M*>(a.rstd), static_cast<T*>(a.dx), static_cast<M*>(a.partial), a.N, a.D);
  ASSAY_CUDA_CHECK_LAUNCH();
  add_rows<M>(static_cast<const M*>(a.partial), static_cast<M*>(a.dgain), blocks, a.D, stream);
}

template <class T, int width>
void backward_as(const BackwardArguments& a, cudaStream_t stream) {
  const std::int64_t vectors = a.D / width;
  if (vectors <= most_threads) return backward_of_count<T, width, 1>(a, stream);
  if (vectors <= 2 * most_threads) return backward_of_count<T, width, 2>(a, stream);
  return backward_of_count<T, width, most_vectors>(a, stream);
}

}  // namespace

bool fits(const BackwardArguments& a) {
  const std::int64_t element = element_bytes(a.dtype), row_bytes = a.D * element;
  const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.dy, row_bytes) &&
                    aligned_16(a.dx, row_bytes) && aligned_16(a.gain, row_bytes);
  return a.D <= most_threads * most_vectors * (wide ? 16 / element : 1);
}

// Three blocks of a row of 2,304 bf16 entries are resident on each of an H200's 132 multiprocessors.
std::int64_t partial_rows(std::int64_t N) { return std::clamp<std::int64_t>(N, 1, 396); }

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
    const bool wide =
        aligned_16(a.x, row_bytes) && aligned_16(a.y, row_bytes) && aligned_16(a.gain, row_bytes);
    wide ? forward_as<T, full_width<T>>(a, stream) : forward_as<T, 1>(a, stream);
  });
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
    const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.dy, row_bytes) &&
                      aligned_16(a.dx, row_bytes) && aligned_16(a.gain, row_bytes);
    wide ? backward_as<T, full_width<T>>(a, stream) : backward_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::rms_norm::cuda
