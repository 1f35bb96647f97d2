// qk_norm and rope behind it on the GPU, in one pass over memory. `lanes` threads share a head. Each holds
// vectors of its lower half and those of the upper half that they turn with. A norm of each head sums within
// these lanes. A norm across heads gives a token to a block, with lanes for each query and key head, and sums
// within the block. Backward: a fixed number of blocks walks over all heads of one gain, across heads over
// all tokens, so that each thread sums the gain's gradient of its entries in registers, in a fixed order.
#include "impl/ops/cuda_rows.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/qk_norm/qk_norm_launch.hpp"
#include "impl/ops/rope/rope_turn.cuh"

namespace assay::impl::qk_norm::cuda {

using namespace assay::impl::cuda;

namespace {

constexpr int forward_threads = 256, backward_threads = 128, most_token_threads = 512;
constexpr int longest_head = 256;
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
  /// Vectors make up half a head (with_layout): then there is nothing to ask.
  __device__ static bool inside(int c, int half) { return L::width > 1 || place(c) < half; }

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

__device__ __forceinline__ unsigned position_of(const Arguments& a, unsigned n) {
  return a.positions ? static_cast<unsigned>(a.positions[n]) : n % static_cast<unsigned>(a.T);
}

/// The angles of a position; `low` are the cosines.
template <class M, class L>
__device__ __forceinline__ void load_angles(Head<M, L>& angles, const Arguments& a, std::int64_t position,
                                            int half) {
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

/// Heads [first, first + heads), which share a gain.
template <class M>
struct Part {
  unsigned first, heads;
  const M* gain;
};
template <class M>
__device__ __forceinline__ Part<M> part_of(const Arguments& a, unsigned h) {
  const auto heads = static_cast<unsigned>(a.heads), kv_heads = static_cast<unsigned>(a.kv_heads);
  if (h < heads) return {0, heads, static_cast<const M*>(a.q_gain)};
  return {heads, kv_heads, static_cast<const M*>(a.k_gain)};
}

/// Sum over the threads of a part's heads, the same on each of them, in a fixed order. `lanes` threads of the
/// block have a head. `scratch` holds a value of each head, not those of the call before: then one barrier is
/// enough.
template <int lanes, class M>
__device__ __forceinline__ M sum_of_part(M value, const Part<M>& part, M* scratch) {
  value = sum_of_lanes<lanes>(value);
  if (threadIdx.x % lanes == 0) scratch[threadIdx.x / lanes] = value;
  __syncthreads();
  M sum = 0;
#pragma unroll 8
  for (unsigned h = part.first; h < part.first + part.heads; ++h) sum += scratch[h];
  return sum;
}

/// Sum of the squares that a thread holds.
template <class M, class L>
__device__ __forceinline__ M squares_of(const Pairs<M, L>& x, int half) {
  M squares = 0;
  x.each(half, [&](int c, int k) { squares += x.low[c][k] * x.low[c][k] + x.high[c][k] * x.high[c][k]; });
  return squares;
}

/// x becomes forward's y.
template <class M, class L>
__device__ __forceinline__ void normalise(Pairs<M, L>& x, M r, const Pairs<M, L>& g, const Pairs<M, L>& angle,
                                          int half) {
  x.each(half, [&](int c, int k) {
    x.low[c][k] *= r * g.low[c][k];
    x.high[c][k] *= r * g.high[c][k];
    rope::cuda::turn(x.low[c][k], x.high[c][k], angle.low[c][k], angle.high[c][k]);
  });
}

/// Turns dy back and scales x to xhat; `dgain` += the gain's gradient. Returns the sum of dy * g * xhat over
/// what a thread holds.
template <class M, class L>
__device__ __forceinline__ M project(Pairs<M, L>& x, Pairs<M, L>& dy, M r, const Pairs<M, L>& g,
                                     const Pairs<M, L>& angle, Pairs<M, L>& dgain, int half) {
  M projection = 0;
  const auto add = [&](M& xhat, M upstream, M gain, M& sum) {
    xhat *= r;
    const M product = upstream * xhat;
    sum += product;
    projection += product * gain;
  };
  x.each(half, [&](int c, int k) {
    rope::cuda::turn(dy.low[c][k], dy.high[c][k], angle.low[c][k], -angle.high[c][k]);
    add(x.low[c][k], dy.low[c][k], g.low[c][k], dgain.low[c][k]);
    add(x.high[c][k], dy.high[c][k], g.high[c][k], dgain.high[c][k]);
  });
  return projection;
}

/// dy becomes dx; `projection` is the mean of dy * g * xhat over a row.
template <class M, class L>
__device__ __forceinline__ void differentiate(Pairs<M, L>& dy, const Pairs<M, L>& xhat, M r,
                                              const Pairs<M, L>& g, M projection, int half) {
  xhat.each(half, [&](int c, int k) {
    dy.low[c][k] = r * (dy.low[c][k] * g.low[c][k] - xhat.low[c][k] * projection);
    dy.high[c][k] = r * (dy.high[c][k] * g.high[c][k] - xhat.high[c][k] * projection);
  });
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
  load_angles(angles, a, position_of(a, n), half);
  Pairs<M, L> x = head.open(half);
  const M r = M(1) / sqrt(sum_of_lanes<L::lanes>(squares_of(x, half)) / M(a.E) + eps);
  normalise(x, r, gains.open(half), angles.open(half), half);
  Head<T, L>::store(y + at, x, half);
  if (threadIdx.x % L::lanes == 0) rstd[n * of.normed + h] = r;
}

/// Across heads: a block has a token, `lanes` of its threads a query or key head, some of them a value head
/// beside it, which is copied.
template <class T, class L>
__global__ void __launch_bounds__(most_token_threads)
    token_forward_kernel(const Arguments a, Math<T> eps, T* __restrict__ y, Math<T>* __restrict__ rstd) {
  using M = Math<T>;
  __shared__ M scratch[most_token_threads / L::lanes];
  const int half = static_cast<int>(a.E) / 2;
  const Extents of(a);
  const unsigned n = blockIdx.x, h = threadIdx.x / L::lanes;
  const Part<M> part = part_of<M>(a, h);
  const std::int64_t at = (n * of.all + h) * a.E, value_at = at + of.normed * a.E;
  const bool has_value = h < a.kv_heads;
  Head<T, L> head, value;
  head.load(static_cast<const T*>(a.qkv) + at, half);
  if (has_value) value.load(static_cast<const T*>(a.qkv) + value_at, half);
  const unsigned position = position_of(a, n);
  Pairs<M, L> x = head.open(half);
  if (has_value) Head<T, L>::store(y + value_at, value.open(half), half);
  const M squares = sum_of_part<L::lanes>(squares_of(x, half), part, scratch);
  Head<M, L> gains, angles;
  gains.load(part.gain + (h - part.first) * a.E, half);
  load_angles(angles, a, position, half);
  const M r = M(1) / sqrt(squares / M(part.heads * a.E) + eps);
  normalise(x, r, gains.open(half), angles.open(half), half);
  Head<T, L>::store(y + at, x, half);
  if (threadIdx.x % L::lanes == 0 && h == part.first) rstd[2 * n + (h > 0)] = r;
}

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
    load_angles(angles, a, position_of(a, n), half);
    const M r = rstd[n * of.normed + h];
    Pairs<M, L> x = of_x.open(half), dy = of_dy.open(half);
    const M projection = project(x, dy, r, g, angles.open(half), sum, half);
    differentiate(dy, x, r, g, sum_of_lanes<L::lanes>(projection) / M(a.E), half);
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

/// Across heads: as in forward, and a block reads its next token while it works on the one before: heads and
/// statistic first, angles once those before are used up. `partial`: the queries' rows [gridDim.x, heads E],
/// then the keys'.
template <class T, class L>
__global__ void __launch_bounds__(most_token_threads)
    token_backward_kernel(const Arguments a, T* __restrict__ dqkv, const Math<T>* __restrict__ rstd,
                          Math<T>* __restrict__ partial) {
  using M = Math<T>;
  __shared__ M scratch[2][most_token_threads / L::lanes];
  const int half = static_cast<int>(a.E) / 2;
  const Extents of(a);
  const unsigned h = threadIdx.x / L::lanes;
  const Part<M> part = part_of<M>(a, h);
  const std::int64_t own_entries = (h - part.first) * a.E;
  Head<M, L> gains;
  gains.load(part.gain + own_entries, half);
  const Pairs<M, L> g = gains.open(half);
  Pairs<M, L> sum = {};
  Head<T, L> next_x, next_dy;
  Head<M, L> angles;
  unsigned next_position = 0;
  M next_r = 0;
  const auto read_heads = [&](unsigned n) {
    if (n >= of.N) return;
    const std::int64_t at = (n * of.all + h) * a.E;
    next_x.load(static_cast<const T*>(a.qkv) + at, half);
    next_dy.load(dqkv + at, half);
    next_position = position_of(a, n);
    next_r = rstd[2 * n + (part.first > 0)];
  };
  read_heads(blockIdx.x);
  load_angles(angles, a, next_position, half);
  int turn = 0;
  for (unsigned n = blockIdx.x; n < of.N; n += gridDim.x, turn ^= 1) {
    Pairs<M, L> x = next_x.open(half), dy = next_dy.open(half);
    const M r = next_r;
    read_heads(n + gridDim.x);
    const M projection = project(x, dy, r, g, angles.open(half), sum, half);
    load_angles(angles, a, next_position, half);
    const M mean = sum_of_part<L::lanes>(projection, part, scratch[turn]) / M(part.heads * a.E);
    differentiate(dy, x, r, g, mean, half);
    Head<T, L>::store(dqkv + (n * of.all + h) * a.E, dy, half);
  }
  const std::int64_t row = static_cast<std::int64_t>(gridDim.x) * part.first + blockIdx.x * part.heads;
  Head<M, L>::store(partial + row * a.E + own_entries, sum, half);
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

std::int64_t token_threads(const Arguments& a, int lanes) { return (a.heads + a.kv_heads) * lanes; }

}  // namespace

bool fits(const Arguments& a, const void* values) {
  if (a.E > longest_head || !a.across_heads) return a.E <= longest_head;
  bool fit = false;
  with_element(a.dtype, [&](auto element) {
    with_layout<decltype(element)>(a, aligned(a, values), [&](auto layout) {
      fit = token_threads(a, decltype(layout)::lanes) <= most_token_threads;
    });
  });
  return fit;
}

void launch_forward(const Arguments& a, double eps, void* y, void* rstd, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    with_layout<T>(a, aligned(a, y), [&](auto layout) {
      using L = decltype(layout);
      constexpr std::int64_t groups = forward_threads / L::lanes;
      const std::int64_t heads = a.N * (a.heads + 2 * a.kv_heads);
      const auto kernel = a.across_heads ? token_forward_kernel<T, L> : forward_kernel<T, L>;
      const auto blocks = static_cast<unsigned>(a.across_heads ? a.N : (heads + groups - 1) / groups),
                 threads =
                     static_cast<unsigned>(a.across_heads ? token_threads(a, L::lanes) : forward_threads);
      kernel<<<blocks, threads, 0, stream>>>(a, static_cast<Math<T>>(eps), static_cast<T*>(y),
                                             static_cast<Math<T>*>(rstd));
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
    const auto add = [&](const void* rows, std::int64_t count, std::int64_t columns, void* dgain) {
      add_rows<M>(static_cast<const M*>(rows), static_cast<M*>(dgain), count, columns, stream);
    };
    if (a.across_heads) {
      with_layout<T>(a, aligned(a, dqkv), [&](auto layout) {
        using L = decltype(layout);
        token_backward_kernel<T, L>
            <<<static_cast<unsigned>(token_partial_rows), static_cast<unsigned>(token_threads(a, L::lanes)),
               0, stream>>>(a, static_cast<T*>(dqkv), static_cast<const M*>(rstd), static_cast<M*>(partial));
      });
      ASSAY_CUDA_CHECK_LAUNCH();
      add(partial, token_partial_rows, a.heads * a.E, dq_gain);
      add(static_cast<M*>(partial) + token_partial_rows * a.heads * a.E, token_partial_rows, a.kv_heads * a.E,
          dk_gain);
      return;
    }
    const auto of_part = [&](const Part<M>& part, void* dgain) {
      with_layout<T>(a, aligned(a, dqkv), [&](auto layout) {
        backward_kernel<T, decltype(layout)>
            <<<static_cast<unsigned>(head_partial_rows), backward_threads, 0, stream>>>(
                a, part, static_cast<T*>(dqkv), static_cast<const M*>(rstd), static_cast<M*>(partial));
      });
      ASSAY_CUDA_CHECK_LAUNCH();
      add(partial, head_partial_rows, a.E, dgain);
    };
    const auto heads = static_cast<unsigned>(a.heads), kv_heads = static_cast<unsigned>(a.kv_heads);
    of_part({0, heads, static_cast<const M*>(a.q_gain)}, dq_gain);
    of_part({heads, kv_heads, static_cast<const M*>(a.k_gain)}, dk_gain);
  });
}

}  // namespace assay::impl::qk_norm::cuda
