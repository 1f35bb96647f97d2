// rms_norm on the GPU: one block per row forward; backward keeps the gain's gradient of its rows in shared
// memory and leaves one partial row per block, which a second kernel adds in order. No atomics: the same bits
// at every run.
#include <algorithm>

#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/rms_norm_launch.hpp"

namespace assay::impl::rms_norm::cuda {

using namespace assay::impl::cuda;

namespace {

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
    const V v = xs[i], g = gs[i];
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) out.element[k] = narrow<T>(widen(v.element[k]) * r * widen(g.element[k]));
    ys[i] = out;
  }
  if (threadIdx.x == 0) rstd[row] = r;
}

/// Block b handles rows b, b + gridDim.x, ...; a thread always handles the same columns, so its sums need no
/// lock.
template <class T, int width>
__global__ void backward_kernel(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ gain,
                                const Math<T>* __restrict__ rstd, T* __restrict__ dx,
                                Math<T>* __restrict__ partial, std::int64_t N, std::int64_t D) {
  using M = Math<T>;
  using V = Vector<T, width>;
  extern __shared__ __align__(16) unsigned char shared[];
  M* sums = reinterpret_cast<M*>(shared);
  __shared__ M scratch[33];
  const std::int64_t vectors = D / width;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x)
    for (int k = 0; k < width; ++k) sums[i * width + k] = 0;
  const V* gs = reinterpret_cast<const V*>(gain);
  for (std::int64_t row = blockIdx.x; row < N; row += gridDim.x) {
    const V *xs = reinterpret_cast<const V*>(x + row * D), *dys = reinterpret_cast<const V*>(dy + row * D);
    V* dxs = reinterpret_cast<V*>(dx + row * D);
    const M r = rstd[row];
    M projection = 0;
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      const V v = xs[i], d = dys[i], g = gs[i];
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M product = widen(d.element[k]) * (widen(v.element[k]) * r);
        sums[i * width + k] += product;
        projection += product * widen(g.element[k]);
      }
    }
    projection = block_sum(projection, scratch) / M(D);
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      const V v = xs[i], d = dys[i], g = gs[i];
      V out = dxs[i];
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M own = r * (widen(d.element[k]) * widen(g.element[k]) - widen(v.element[k]) * r * projection);
        out.element[k] = narrow<T>(widen(out.element[k]) + own);
      }
      dxs[i] = out;
    }
  }
  M* mine = partial + static_cast<std::int64_t>(blockIdx.x) * D;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x)
    for (int k = 0; k < width; ++k) mine[i * width + k] = sums[i * width + k];
}

template <class M>
__global__ void add_partials_kernel(const M* __restrict__ partial, M* __restrict__ dgain, std::int64_t rows,
                                    std::int64_t D) {
  const std::int64_t d = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (d >= D) return;
  M sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) sum += partial[row * D + d];
  dgain[d] += sum;
}

unsigned threads_for(std::int64_t vectors) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((vectors + 31) / 32 * 32, 32, 512));
}

template <class T, int width>
void forward_as(const ForwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  forward_kernel<T, width><<<static_cast<unsigned>(a.N), threads_for(a.D / width), 0, stream>>>(
      static_cast<const T*>(a.x), static_cast<const T*>(a.gain), static_cast<T*>(a.y),
      static_cast<M*>(a.rstd), a.D, static_cast<M>(a.eps));
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T, int width>
void backward_as(const BackwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const auto blocks = static_cast<unsigned>(partial_rows(a.N));
  const std::size_t shared = static_cast<std::size_t>(a.D) * sizeof(M);
  if (shared > 40 * 1024)
    ASSAY_CUDA_CHECK(cudaFuncSetAttribute(
        backward_kernel<T, width>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  backward_kernel<T, width><<<blocks, threads_for(a.D / width), shared, stream>>>(
      static_cast<const T*>(a.dy), static_cast<const T*>(a.x), static_cast<const T*>(a.gain),
      static_cast<const M*>(a.rstd), static_cast<T*>(a.dx), static_cast<M*>(a.partial), a.N, a.D);
  ASSAY_CUDA_CHECK_LAUNCH();
  add_partials_kernel<M><<<static_cast<unsigned>((a.D + 127) / 128), 128, 0, stream>>>(
      static_cast<const M*>(a.partial), static_cast<M*>(a.dgain), blocks, a.D);
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T>
void forward_of(const ForwardArguments& a, cudaStream_t stream) {
  const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
  const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.y, row_bytes) && aligned_16(a.gain, row_bytes);
  wide ? forward_as<T, full_width<T>>(a, stream) : forward_as<T, 1>(a, stream);
}

template <class T>
void backward_of(const BackwardArguments& a, cudaStream_t stream) {
  const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
  const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.dy, row_bytes) &&
                    aligned_16(a.dx, row_bytes) && aligned_16(a.gain, row_bytes);
  wide ? backward_as<T, full_width<T>>(a, stream) : backward_as<T, 1>(a, stream);
}

}  // namespace

std::int64_t partial_rows(std::int64_t N) { return std::clamp<std::int64_t>(N, 1, 264); }

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  switch (a.dtype) {
    case Dtype::f64:
      return forward_of<double>(a, stream);
    case Dtype::f32:
      return forward_of<float>(a, stream);
    case Dtype::bf16:
      return forward_of<__nv_bfloat16>(a, stream);
  }
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  switch (a.dtype) {
    case Dtype::f64:
      return backward_of<double>(a, stream);
    case Dtype::f32:
      return backward_of<float>(a, stream);
    case Dtype::bf16:
      return backward_of<__nv_bfloat16>(a, stream);
  }
}

}  // namespace assay::impl::rms_norm::cuda
