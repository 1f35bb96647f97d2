// rms_norm on the GPU. Forward: one warp per row, which it holds in registers; one block for longer rows.
// Backward: a thread keeps the same columns over all rows of its block, so the gain's gradient is summed in
// registers; each block leaves one partial row, and a second kernel adds those in order. No atomics: the same
// bits at every run.
#include "impl/ops/cuda_amax.cuh"
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/rms_norm/rms_norm_launch.hpp"

namespace assay::impl::rms_norm::cuda {

using namespace assay::impl::cuda;

namespace {

/// Backward: most threads of a block, and most vectors that one of them keeps in registers. Forward: rows of
/// a block where a warp has a row.
constexpr int most_threads = 512, most_vectors = 4, warps = 4;

/// x + residual, rounded to their type.
template <class T, int width>
__device__ Vector<T, width> sum_of(const Vector<T, width>& x, const Vector<T, width>& residual) {
  Vector<T, width> out;
#pragma unroll
  for (int k = 0; k < width; ++k)
    out.element[k] = narrow<T>(widen(x.element[k]) + widen(residual.element[k]));
  return out;
}

/// A warp holds its row: up to `count` vectors a lane, all read before the first is used. `adds`: the row is
/// that of `sum`, which becomes sum + residual first; x is not read.
template <class T, int width, int count, bool adds>
__global__ void __launch_bounds__(32 * warps)
    row_in_warp_kernel(const T* __restrict__ x, const T* __restrict__ residual, T* __restrict__ sum,
                       const Math<T>* __restrict__ gain, T* __restrict__ y, Math<T>* __restrict__ rstd,
                       float* __restrict__ amax, std::int64_t N, std::int64_t D, Math<T> eps) {
  using M = Math<T>;
  using V = Vector<T, width>;
  using G = Vector<M, width>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.y;
  if (row >= N) return;
  const int vectors = static_cast<int>(D) / width, lane = static_cast<int>(threadIdx.x);
  const V* xs = reinterpret_cast<const V*>((adds ? sum : x) + row * D);
  const G* gs = reinterpret_cast<const G*>(gain);
  Held<T, width> own[count];
#pragma unroll
  for (int c = 0; c < count; ++c)
    if (c * 32 + lane < vectors) own[c].load(xs + c * 32 + lane);
  if constexpr (adds) {
    Held<T, width> added[count];
#pragma unroll
    for (int c = 0; c < count; ++c)
      if (c * 32 + lane < vectors)
        added[c].load(reinterpret_cast<const V*>(residual + row * D) + c * 32 + lane);
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (c * 32 + lane >= vectors) continue;
      const V both = sum_of(own[c].open(), added[c].open());
      own[c].close(both);
      reinterpret_cast<V*>(sum + row * D)[c * 32 + lane] = both;
    }
  }
  M squares = 0;
#pragma unroll
  for (int c = 0; c < count; ++c) {
    if (c * 32 + lane >= vectors) continue;
    const V v = own[c].open();
#pragma unroll
    for (int k = 0; k < width; ++k) squares += widen(v.element[k]) * widen(v.element[k]);
  }
  const M r = M(1) / sqrt(warp_sum(squares) / M(D) + eps);
  if (lane == 0) rstd[row] = r;
  if (!y && !amax) return;
  V* ys = reinterpret_cast<V*>(y + row * D);
  unsigned most = 0;
#pragma unroll
  for (int c = 0; c < count; ++c) {
    if (c * 32 + lane >= vectors) continue;
    const V v = own[c].open();
    const G g = gs[c * 32 + lane];
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      out.element[k] = narrow<T>(widen(v.element[k]) * r * g.element[k]);
      most = max(most, magnitude_bits(static_cast<float>(out.element[k])));
    }
    if (y) ys[c * 32 + lane] = out;
  }
  if (amax) raise(amax, most);
}

template <class T, int width, bool adds>
__global__ void forward_kernel(const T* __restrict__ x, const T* __restrict__ residual, T* __restrict__ sum,
                               const Math<T>* __restrict__ gain, T* __restrict__ y,
                               Math<T>* __restrict__ rstd, float* __restrict__ amax, std::int64_t D,
                               Math<T> eps) {
  using M = Math<T>;
  using V = Vector<T, width>;
  using G = Vector<M, width>;
  __shared__ M scratch[33];
  const std::int64_t row = blockIdx.x, vectors = D / width;
  const V* xs = reinterpret_cast<const V*>((adds ? sum : x) + row * D);
  M squares = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    V v = xs[i];
    if constexpr (adds) {
      v = sum_of(v, reinterpret_cast<const V*>(residual + row * D)[i]);
      reinterpret_cast<V*>(sum + row * D)[i] = v;
    }
#pragma unroll
    for (int k = 0; k < width; ++k) squares += widen(v.element[k]) * widen(v.element[k]);
  }
  const M r = M(1) / sqrt(block_sum(squares, scratch) / M(D) + eps);
  if (threadIdx.x == 0) rstd[row] = r;
  if (!y && !amax) return;
  const G* gs = reinterpret_cast<const G*>(gain);
  V* ys = reinterpret_cast<V*>(y + row * D);
  unsigned most = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const V v = xs[i];  // from the cache, the second time
    const G g = gs[i];
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      out.element[k] = narrow<T>(widen(v.element[k]) * r * g.element[k]);
      most = max(most, magnitude_bits(static_cast<float>(out.element[k])));
    }
    if (y) ys[i] = out;
  }
  if (amax) raise(amax, most);
}

/// What a thread holds of a row, `count` vectors of each tensor: vector c at threadIdx.x + c * blockDim.x.
template <class T, int width, int count>
struct Row {
  using V = Vector<T, width>;
  Held<T, width> x[count], dy[count], residual[count];
  Math<T> rstd;

  __device__ static std::int64_t place(int c) {
    return threadIdx.x + static_cast<std::int64_t>(c) * blockDim.x;
  }
  __device__ void load(const T* xs, const T* dys, const T* residuals, const Math<T>* rstds, std::int64_t row,
                       std::int64_t D) {
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (place(c) >= D / width) continue;
      x[c].load(reinterpret_cast<const V*>(xs + row * D) + place(c));
      dy[c].load(reinterpret_cast<const V*>(dys + row * D) + place(c));
      residual[c].load(reinterpret_cast<const V*>(residuals + row * D) + place(c));
    }
    rstd = rstds[row];
  }
};

/// Sum over the threads of a block, the same on every thread. `scratch` holds 32 values, not those of the
/// call before: then one barrier is enough.
template <class M>
__device__ M sum_of_block(M value, M* scratch) {
  value = warp_sum(value);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  return warp_sum(lane < static_cast<int>(blockDim.x) / 32 ? scratch[lane] : M(0));
}

/// Block b handles rows b, b + gridDim.x, ... and reads each while it works on the one before, where
/// registers allow that. dx may be `residual`. `again`: forward's y is written over dy, else dy is only read.
template <class T, int width, int count, bool again>
__global__ void __launch_bounds__(most_threads)
    backward_kernel(T* __restrict__ dy, const T* __restrict__ x, const Math<T>* __restrict__ gain,
                    const Math<T>* __restrict__ rstd, const T* residual, T* dx, Math<T>* __restrict__ partial,
                    std::int64_t N, std::int64_t D) {
  using M = Math<T>;
  using R = Row<T, width, count>;
  using V = typename R::V;
  using G = Vector<M, width>;
  constexpr bool ahead = count <= 2;
  __shared__ M scratch[2][32];
  const std::int64_t vectors = D / width;
  M sums[count][width] = {};
  Held<M, width> gains[count];
#pragma unroll
  for (int c = 0; c < count; ++c)
    if (R::place(c) < vectors) gains[c].load(reinterpret_cast<const G*>(gain) + R::place(c));
  R own, next;
  if (ahead) next.load(x, dy, residual, rstd, blockIdx.x, D);
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < N; row += gridDim.x, turn ^= 1) {
    if constexpr (ahead) {
      own = next;
      if (row + gridDim.x < N) next.load(x, dy, residual, rstd, row + gridDim.x, D);
    } else {
      own.load(x, dy, residual, rstd, row, D);
    }
    const M r = own.rstd;
    M projection = 0;
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (R::place(c) >= vectors) continue;
      const V xs = own.x[c].open(), dys = own.dy[c].open();
      const G gs = gains[c].open();
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M product = widen(dys.element[k]) * (widen(xs.element[k]) * r);
        sums[c][k] += product;
        projection += product * gs.element[k];
      }
    }
    projection = sum_of_block(projection, scratch[turn]) / M(D);
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (R::place(c) >= vectors) continue;
      const V xs = own.x[c].open(), dys = own.dy[c].open();
      const G gs = gains[c].open();
      V out = own.residual[c].open(), y;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const M xhat = widen(xs.element[k]) * r, g = gs.element[k];
        const M gradient = r * (widen(dys.element[k]) * g - xhat * projection);
        out.element[k] = narrow<T>(widen(out.element[k]) + gradient);
        if constexpr (again) y.element[k] = narrow<T>(xhat * g);  // as in forward, to the bit
      }
      reinterpret_cast<V*>(dx + row * D)[R::place(c)] = out;
      if constexpr (again) reinterpret_cast<V*>(dy + row * D)[R::place(c)] = y;
    }
  }
  M* mine = partial + static_cast<std::int64_t>(blockIdx.x) * D;
#pragma unroll
  for (int c = 0; c < count; ++c) {
    if (R::place(c) >= vectors) continue;
#pragma unroll
    for (int k = 0; k < width; ++k) mine[R::place(c) * width + k] = sums[c][k];
  }
}

template <class T, int width, int count, bool adds>
void row_in_warp(const ForwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  row_in_warp_kernel<T, width, count, adds>
      <<<static_cast<unsigned>((a.N + warps - 1) / warps), dim3(32, warps), 0, stream>>>(
          static_cast<const T*>(a.x), static_cast<const T*>(a.residual), static_cast<T*>(a.sum),
          static_cast<const M*>(a.gain), static_cast<T*>(a.y), static_cast<M*>(a.rstd), a.amax, a.N, a.D,
          static_cast<M>(a.eps));
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T, int width, bool adds>
void forward_as(const ForwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  if constexpr (width > 1) {
    const std::int64_t vectors = (a.D / width + 31) / 32;  // a lane
    if (vectors <= 4) return row_in_warp<T, width, 4, adds>(a, stream);
    if (vectors <= 9) return row_in_warp<T, width, 9, adds>(a, stream);
    if (vectors <= 16) return row_in_warp<T, width, 16, adds>(a, stream);
  }
  forward_kernel<T, width, adds><<<static_cast<unsigned>(a.N), threads_for(a.D / width), 0, stream>>>(
      static_cast<const T*>(a.x), static_cast<const T*>(a.residual), static_cast<T*>(a.sum),
      static_cast<const M*>(a.gain), static_cast<T*>(a.y), static_cast<M*>(a.rstd), a.amax, a.D,
      static_cast<M>(a.eps));
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T, bool adds>
void forward_of_width(const ForwardArguments& a, cudaStream_t stream) {
  const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
  const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.y, row_bytes) && aligned_gain(a.gain) &&
                    (!adds || aligned_16(a.residual, row_bytes));
  wide ? forward_as<T, full_width<T>, adds>(a, stream) : forward_as<T, 1, adds>(a, stream);
}

template <class T, int width, int count>
void backward_of_count(const BackwardArguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const std::int64_t vectors = a.D / width;
  const auto blocks = static_cast<unsigned>(partial_rows(a.N));
  const auto kernel = a.value == ForwardValue::again ? backward_kernel<T, width, count, true>
                                                     : backward_kernel<T, width, count, false>;
  kernel<<<blocks, threads_for((vectors + count - 1) / count, most_threads), 0, stream>>>(
      static_cast<T*>(a.dy), static_cast<const T*>(a.x), static_cast<const M*>(a.gain),
      static_cast<const M*>(a.rstd), static_cast<const T*>(a.residual), static_cast<T*>(a.dx),
      static_cast<M*>(a.partial), a.N, a.D);
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
                    aligned_16(a.residual, row_bytes) && aligned_16(a.dx, row_bytes) && aligned_gain(a.gain);
  return a.D <= most_threads * most_vectors * (wide ? 16 / element : 1);
}

// Three blocks of a row of 2,304 bf16 entries are resident on each of an H200's 132 multiprocessors.
std::int64_t partial_rows(std::int64_t N) { return std::clamp<std::int64_t>(N, 1, 396); }

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    a.residual ? forward_of_width<T, true>(a, stream) : forward_of_width<T, false>(a, stream);
  });
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t row_bytes = a.D * static_cast<std::int64_t>(sizeof(T));
    const bool wide = aligned_16(a.x, row_bytes) && aligned_16(a.dy, row_bytes) &&
                      aligned_16(a.residual, row_bytes) && aligned_16(a.dx, row_bytes) &&
                      aligned_gain(a.gain);
    wide ? backward_as<T, full_width<T>>(a, stream) : backward_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::rms_norm::cuda
