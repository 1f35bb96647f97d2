// qk_norm on the GPU: one warp per head of a token. Backward: a fixed number of blocks walks over all heads,
// so that each lane sums the gain's gradient of its entries in registers, in a fixed order.
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/qk_norm/qk_norm_launch.hpp"

namespace assay::impl::qk_norm::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int warps = 8;

/// Entries of a head that one lane holds: `count` vectors of `width`, vector c at (c * 32 + lane).
template <class T, int width, int count>
struct Lane {
  using V = Vector<T, width>;
  V vectors[count];

  __device__ static std::int64_t place(int c) { return c * 32 + static_cast<int>(threadIdx.x); }
  __device__ static bool inside(int c, std::int64_t E) { return (place(c) + 1) * width <= E; }
  __device__ void load(const T* head, std::int64_t E) {
#pragma unroll
    for (int c = 0; c < count; ++c)
      if (inside(c, E)) vectors[c] = reinterpret_cast<const V*>(head)[place(c)];
  }
  __device__ void store(T* head, std::int64_t E) const {
#pragma unroll
    for (int c = 0; c < count; ++c)
      if (inside(c, E)) reinterpret_cast<V*>(head)[place(c)] = vectors[c];
  }
  /// f(entry number c * width + k) for every entry held.
  template <class F>
  __device__ static void each(std::int64_t E, const F& f) {
#pragma unroll
    for (int c = 0; c < count; ++c) {
      if (!inside(c, E)) continue;
#pragma unroll
      for (int k = 0; k < width; ++k) f(c, k);
    }
  }
};

template <class T, int width, int count>
__global__ void forward_kernel(Heads heads, Math<T> eps, const T* __restrict__ qkv,
                               const Math<T>* __restrict__ gain, T* __restrict__ y,
                               Math<T>* __restrict__ rstd) {
  using M = Math<T>;
  using L = Lane<T, width, count>;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.y;
  if (item >= heads.N * heads.count) return;
  const std::int64_t n = item / heads.count, h = heads.first + item % heads.count;
  L x;
  Lane<M, width, count> g;
  x.load(qkv + (n * heads.all + h) * heads.E, heads.E);
  g.load(gain, heads.E);
  M squares = 0;
  L::each(heads.E,
          [&](int c, int k) { squares += widen(x.vectors[c].element[k]) * widen(x.vectors[c].element[k]); });
  const M r = M(1) / sqrt(warp_sum(squares) / M(heads.E) + eps);
  L::each(heads.E, [&](int c, int k) {
    x.vectors[c].element[k] = narrow<T>(widen(x.vectors[c].element[k]) * r * g.vectors[c].element[k]);
  });
  x.store(y + (n * heads.all + h) * heads.E, heads.E);
  if (threadIdx.x == 0) rstd[n * heads.normed + h] = r;
}

template <class T, int width, int count>
__global__ void backward_kernel(Heads heads, T* __restrict__ dqkv, const T* __restrict__ qkv,
                                const Math<T>* __restrict__ gain, const Math<T>* __restrict__ rstd,
                                Math<T>* __restrict__ partial) {
  using M = Math<T>;
  using L = Lane<T, width, count>;
  __shared__ M sums[warps][longest_head];
  Lane<M, width, count> g;
  g.load(gain, heads.E);
  M sum[count][width] = {};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * warps;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.y;
       item < heads.N * heads.count; item += stride) {
    const std::int64_t n = item / heads.count, h = heads.first + item % heads.count;
    const std::int64_t head = (n * heads.all + h) * heads.E;
    L x, dy;
    x.load(qkv + head, heads.E);
    dy.load(dqkv + head, heads.E);
    const M r = rstd[n * heads.normed + h];
    M projection = 0;
    L::each(heads.E, [&](int c, int k) {
      const M product = widen(dy.vectors[c].element[k]) * (widen(x.vectors[c].element[k]) * r);
      sum[c][k] += product;
      projection += product * g.vectors[c].element[k];
    });
    projection = warp_sum(projection) / M(heads.E);
    L::each(heads.E, [&](int c, int k) {
      dy.vectors[c].element[k] = narrow<T>(r * (widen(dy.vectors[c].element[k]) * g.vectors[c].element[k] -
                                                widen(x.vectors[c].element[k]) * r * projection));
    });
    dy.store(dqkv + head, heads.E);
  }
  L::each(heads.E, [&](int c, int k) { sums[threadIdx.y][L::place(c) * width + k] = sum[c][k]; });
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.y) * 32 + static_cast<int>(threadIdx.x); e < heads.E;
       e += 32 * warps) {
    M total = 0;
    for (int w = 0; w < warps; ++w) total += sums[w][e];
    partial[static_cast<std::int64_t>(blockIdx.x) * heads.E + e] = total;
  }
}

/// Calls `call` with the vector width and the vectors per lane that a head's extent and alignment allow.
template <class T, class Call>
void with_layout(const Heads& heads, bool aligned, const Call& call) {
  using std::integral_constant;
  constexpr int full = full_width<T>;
  if (aligned && heads.E == 32 * full)
    return call(integral_constant<int, full>{}, integral_constant<int, 1>{});
  if (aligned && full >= 4 && heads.E == 128)
    return call(integral_constant<int, 4>{}, integral_constant<int, 1>{});
  if (aligned && heads.E == 64) return call(integral_constant<int, 2>{}, integral_constant<int, 1>{});
  call(integral_constant<int, 1>{}, integral_constant<int, longest_head / 32>{});
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace

void launch_forward(const Heads& heads, double eps, const void* qkv, const void* gain, void* y, void* rstd,
                    cudaStream_t stream) {
  const std::int64_t items = heads.N * heads.count;
  if (items == 0) return;
  with_element(heads.dtype, [&](auto element) {
    using T = decltype(element);
    with_layout<T>(heads, aligned(qkv) && aligned_gain(gain) && aligned(y), [&](auto width, auto count) {
      forward_kernel<T, width.value, count.value>
          <<<static_cast<unsigned>((items + warps - 1) / warps), dim3(32, warps), 0, stream>>>(
              heads, static_cast<Math<T>>(eps), static_cast<const T*>(qkv), static_cast<const Math<T>*>(gain),
              static_cast<T*>(y), static_cast<Math<T>*>(rstd));
    });
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(const Heads& heads, void* dqkv, const void* qkv, const void* gain, const void* rstd,
                     void* partial, void* dgain, cudaStream_t stream) {
  if (heads.N * heads.count == 0) return;
  with_element(heads.dtype, [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    with_layout<T>(heads, aligned(qkv) && aligned_gain(gain) && aligned(dqkv), [&](auto width, auto count) {
      backward_kernel<T, width.value, count.value>
          <<<static_cast<unsigned>(partial_rows), dim3(32, warps), 0, stream>>>(
              heads, static_cast<T*>(dqkv), static_cast<const T*>(qkv), static_cast<const Math<T>*>(gain),
              static_cast<const M*>(rstd), static_cast<M*>(partial));
    });
    ASSAY_CUDA_CHECK_LAUNCH();
    add_rows<M>(static_cast<const M*>(partial), static_cast<M*>(dgain), partial_rows, heads.E, stream);
  });
}

}  // namespace assay::impl::qk_norm::cuda
