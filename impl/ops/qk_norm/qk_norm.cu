// qk_norm and rope behind it on the GPU, in one pass over memory. `lanes` threads share a head. Each holds
// vectors of its lower half and those of the upper half that they turn with. Backward: a fixed number of
// blocks walks over all heads of one gain, so that each thread sums the gain's gradient of its entries in
// registers, in a fixed order.
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/qk_norm/qk_norm_launch.hpp"
#include "impl/ops/rope/rope_turn.cuh"

namespace assay::impl::qk_norm::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int forward_threads = 256, backward_threads = 128;
/// Of an SM, all at a time: 528 blocks then fill an H200 of 132 SMs once.
constexpr int backward_blocks = 4;

/// How a head is shared: a thread holds `count` vectors of `width` entries of each half.
template <int width_, int lanes_, int count_>
struct Layout {
  static constexpr int width = width_, lanes = lanes_, count = count_;
};

/// What a thread holds of half a head: vectors number lane, lane + lanes, ... below half / width.
template <class T, class L>
class Share {
 public:
  using V = Vector<T, L::width>;
  __device__ static int place(int c) { return c * L::lanes + static_cast<int>(threadIdx.x) % L::lanes; }
  __device__ static bool inside(int c, int half) { return (place(c) + 1) * L::width <= half; }

  __device__ __forceinline__ void load(const T* from, int half) {
#pragma unroll
    for (int c = 0; c < L::count; ++c)
      if (inside(c, half)) held_[c].load(reinterpret_cast<const V*>(from) + place(c));
  }
  __device__ __forceinline__ void open(Math<T> (&values)[L::count][L::width], int half) const {
#pragma unroll
    for (int c = 0; c < L::count; ++c) {
      if (!inside(c, half)) continue;
      const V vector = held_[c].open();
#pragma unroll
      for (int k = 0; k < L::width; ++k) values[c][k] = widen(vector.element[k]);
    }
  }
  __device__ static __forceinline__ void store(T* to, const Math<T> (&values)[L::count][L::width], int half) {
#pragma unroll
    for (int c = 0; c < L::count; ++c) {
      if (!inside(c, half)) continue;
      V vector;
#pragma unroll
      for (int k = 0; k < L::width; ++k) vector.element[k] = narrow<T>(values[c][k]);
      reinterpret_cast<V*>(to)[place(c)] = vector;
    }
  }

 private:
  Held<T, L::width> held_[L::count];
};

/// Entries of both halves of a head, in the arithmetic's type.
template <class M, class L>
struct Pairs {
  M low[L::count][L::width], high[L::count][L::width];

  /// f(c, k) for every pair that is held.
  template <class F>
  __device__ static __forceinline__ void each(int half, const F& f) {
#pragma unroll
    for (int c = 0; c < L::count; ++c) {
      if (!Share<M, L>::inside(c, half)) continue;
#pragma unroll
      for (int k = 0; k < L::width; ++k) f(c, k);
    }
  }
};

/// Both halves of a head on their way from memory.
template <class T, class L>
struct Head {
  Share<T, L> low, high;
  __device__ __forceinline__ void load(const T* head, int half) {
    low.load(head, half);
    high.load(head + half, half);
  }
  __device__ __forceinline__ Pairs<Math<T>, L> open(int half) const {
    Pairs<Math<T>, L> values;
    low.open(values.low, half);
    high.open(values.high, half);
    return values;
  }
  __device__ static __forceinline__ void store(T* head, const Pairs<Math<T>, L>& values, int half) {
    Share<T, L>::store(head, values.low, half);
    Share<T, L>::store(head + half, values.high, half);
  }
};

/// The angles of a token; `low` are the cosines.
template <class M, class L>
__device__ __forceinline__ void load_angles(Head<M, L>& angles, const Arguments& a, unsigned n, int half) {
  const std::int64_t position = a.positions ? a.positions[n] : n % static_cast<unsigned>(a.T);
  angles.low.load(static_cast<const M*>(a.cosine) + position * half, half);
  angles.high.load(static_cast<const M*>(a.sine) + position * half, half);
}

/// Sum over the threads of a head, the same on each of them, in a fixed order.
template <int lanes, class M>
__device__ __forceinline__ M sum_of_lanes(M value) {
  const unsigned first = threadIdx.x % 32 / lanes * lanes;
  const unsigned together = lanes == 32 ? 0xffffffffu : ((1u << lanes % 32) - 1) << first;
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(together, value, offset);
  return value;
}

/// A qkv of 2^32 heads would not fit on a GPU, and a quotient of 64 bits is a call.
struct Extents {
  unsigned N, normed, all;
  __device__ explicit Extents(const Arguments& a)
      : N(static_cast<unsigned>(a.N)),
        normed(static_cast<unsigned>(a.heads + a.kv_heads)),
        all(static_cast<unsigned>(a.heads + 2 * a.kv_heads)) {}
};

/// A value head is copied.
template <class T, class L>
__global__ void __launch_bounds__(forward_threads)
    forward_kernel(const Arguments a, Math<T> eps, T* __restrict__ y, Math<T>* __restrict__ rstd) {
  using M = Math<T>;
  const int half = static_cast<int>(a.E) / 2;
  const Extents of(a);
  const unsigned item = blockIdx.x * (forward_threads / L::lanes) + threadIdx.x / L::lanes;
  if (item >= of.N * of.all) return;
  const unsigned n = item / of.all, h = item % of.all;
  const std::int64_t at = item * a.E;
  Head<T, L> head;
  head.load(static_cast<const T*>(a.qkv) + at, half);
  if (h >= of.normed) return Head<T, L>::store(y + at, head.open(half), half);

  Head<M, L> gains, angles;
  gains.load(static_cast<const M*>(h < a.heads ? a.q_gain : a.k_gain), half);
  load_angles(angles, a, n, half);
  Pairs<M, L> x = head.open(half);
  M squares = 0;
  x.each(half, [&](int c, int k) { squares += x.low[c][k] * x.low[c][k] + x.high[c][k] * x.high[c][k]; });
  const M r = M(1) / sqrt(sum_of_lanes<L::lanes>(squares) / M(a.E) + eps);
  const Pairs<M, L> g = gains.open(half), angle = angles.open(half);
  x.each(half, [&](int c, int k) {
    x.low[c][k] *= r * g.low[c][k];
    x.high[c][k] *= r * g.high[c][k];
    rope::cuda::turn(x.low[c][k], x.high[c][k], angle.low[c][k], angle.high[c][k]);
  });
  Head<T, L>::store(y + at, x, half);
  if (threadIdx.x % L::lanes == 0) rstd[n * of.normed + h] = r;
}

/// Heads [first, first + heads), which share a gain.
template <class M>
struct Part {
  unsigned first, heads;
  const M* gain;
};

template <class T, class L>
__global__ void __launch_bounds__(backward_threads, backward_blocks)
    backward_kernel(const Arguments a, const Part<Math<T>> part, T* __restrict__ dqkv,
                    const Math<T>* __restrict__ rstd, Math<T>* __restrict__ partial) {
  using M = Math<T>;
  constexpr unsigned groups = backward_threads / L::lanes;
  __shared__ M sums[groups][2 * L::lanes * L::count * L::width];
  const int half = static_cast<int>(a.E) / 2;
  const unsigned group = threadIdx.x / L::lanes;
  const Extents of(a);
  Head<M, L> gains;
  gains.load(part.gain, half);
  const Pairs<M, L> g = gains.open(half);
  Pairs<M, L> sum = {};
  for (unsigned item = blockIdx.x * groups + group; item < of.N * part.heads; item += gridDim.x * groups) {
    const unsigned n = item / part.heads, h = part.first + item % part.heads;
    const std::int64_t at = (n * of.all + h) * a.E;
    Head<T, L> of_x, of_dy;
    Head<M, L> angles;
    of_x.load(static_cast<const T*>(a.qkv) + at, half);
    of_dy.load(dqkv + at, half);
    load_angles(angles, a, n, half);
    const M r = rstd[n * of.normed + h];
    Pairs<M, L> x = of_x.open(half), dy = of_dy.open(half);
    const Pairs<M, L> angle = angles.open(half);
    M projection = 0;
    const auto add = [&](M& xhat, M upstream, M gain, M& dgain) {
      xhat *= r;
      const M product = upstream * xhat;
      dgain += product;
      projection += product * gain;
    };
    x.each(half, [&](int c, int k) {
      rope::cuda::turn(dy.low[c][k], dy.high[c][k], angle.low[c][k], -angle.high[c][k]);
      add(x.low[c][k], dy.low[c][k], g.low[c][k], sum.low[c][k]);
      add(x.high[c][k], dy.high[c][k], g.high[c][k], sum.high[c][k]);
    });
    projection = sum_of_lanes<L::lanes>(projection) / M(a.E);
    x.each(half, [&](int c, int k) {
      dy.low[c][k] = r * (dy.low[c][k] * g.low[c][k] - x.low[c][k] * projection);
      dy.high[c][k] = r * (dy.high[c][k] * g.high[c][k] - x.high[c][k] * projection);
    });
    Head<T, L>::store(dqkv + at, dy, half);
  }
  Head<M, L>::store(sums[group], sum, half);
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < a.E; e += backward_threads) {
    M total = 0;
    for (unsigned each = 0; each < groups; ++each) total += sums[each][e];
    partial[static_cast<std::int64_t>(blockIdx.x) * a.E + e] = total;
  }
}

/// Calls `call` with the layout that a head's extent and alignment allow: vectors of 16 bytes where they make
/// up half a head for one of these numbers of threads, else single entries.
template <class T, class Call>
void with_layout(const Arguments& a, bool aligned, const Call& call) {
  constexpr int width = full_width<T>;
  const auto vectors = [&](auto lanes) {
    if constexpr (2 * width * lanes.value <= longest_head) {
      if (aligned && a.E == 2 * width * lanes.value) {
        call(Layout<width, lanes.value, 1>{});
        return true;
      }
    }
    return false;
  };
  using std::integral_constant;
  if (vectors(integral_constant<int, 4>{}) || vectors(integral_constant<int, 8>{}) ||
      vectors(integral_constant<int, 16>{}) || vectors(integral_constant<int, 32>{}))
    return;
  call(Layout<1, 32, longest_head / 2 / 32>{});
}

/// Whether `values` [N, heads, E] and what is read beside it can be moved in vectors.
bool aligned(const Arguments& a, const void* values) {
  const auto multiple_of_16 = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  return multiple_of_16(a.qkv) && multiple_of_16(values) && aligned_gain(a.q_gain) &&
         aligned_gain(a.k_gain) && aligned_gain(a.cosine) && aligned_gain(a.sine);
}

}  // namespace

void launch_forward(const Arguments& a, double eps, void* y, void* rstd, cudaStream_t stream) {
  const std::int64_t items = a.N * (a.heads + 2 * a.kv_heads);
  if (items == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    with_layout<T>(a, aligned(a, y), [&](auto layout) {
      using L = decltype(layout);
      constexpr std::int64_t groups = forward_threads / L::lanes;
      forward_kernel<T, L>
          <<<static_cast<unsigned>((items + groups - 1) / groups), forward_threads, 0, stream>>>(
              a, static_cast<Math<T>>(eps), static_cast<T*>(y), static_cast<Math<T>*>(rstd));
    });
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(const Arguments& a, void* dqkv, const void* rstd, void* partial, void* dq_gain,
                     void* dk_gain, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    const auto of_part = [&](const Part<M>& part, void* dgain) {
      with_layout<T>(a, aligned(a, dqkv), [&](auto layout) {
        backward_kernel<T, decltype(layout)>
            <<<static_cast<unsigned>(partial_rows), backward_threads, 0, stream>>>(
                a, part, static_cast<T*>(dqkv), static_cast<const M*>(rstd), static_cast<M*>(partial));
      });
      ASSAY_CUDA_CHECK_LAUNCH();
      add_rows<M>(static_cast<const M*>(partial), static_cast<M*>(dgain), partial_rows, a.E, stream);
    };
    const auto heads = static_cast<unsigned>(a.heads), kv_heads = static_cast<unsigned>(a.kv_heads);
    of_part({0, heads, static_cast<const M*>(a.q_gain)}, dq_gain);
    of_part({heads, kv_heads, static_cast<const M*>(a.k_gain)}, dk_gain);
  });
}

}  // namespace assay::impl::qk_norm::cuda
