// rope on the GPU. A thread keeps the cosines and sines of its place in a head and turns that place in
// several heads of one token: vectors of the lower half with their partners in the upper half, all read
// before the first is written.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/rope/rope_launch.hpp"
#include "impl/ops/rope/rope_turn.cuh"

namespace assay::impl::rope::cuda {

using namespace assay::impl::cuda;

namespace {

/// Heads that a thread has under way together.
constexpr int batch = 3;

/// The angles of one place, and the turn by them.
template <class T, int width>
struct Turn {
  using M = Math<T>;
  using V = Vector<T, width>;
  Vector<M, width> cosine, sine;

  __device__ Turn(const M* cosines, const M* sines, std::int64_t position, int half, int e)
      : cosine(reinterpret_cast<const Vector<M, width>*>(cosines + position * half)[e]),
        sine(reinterpret_cast<const Vector<M, width>*>(sines + position * half)[e]) {}
  __device__ void apply(V& low, V& high, M sign) const {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      M left = widen(low.element[k]), right = widen(high.element[k]);
      cuda::turn(left, right, cosine.element[k], sign * sine.element[k]);
      low.element[k] = narrow<T>(left);
      high.element[k] = narrow<T>(right);
    }
  }
};

/// Block: x over the vectors of half a head, y over heads, z over tokens.
__device__ inline std::int64_t own_token() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
}

template <class T, int width>
__global__ void rotate_kernel(T* __restrict__ x, const Math<T>* __restrict__ cosine,
                              const Math<T>* __restrict__ sine, const std::int32_t* __restrict__ positions,
                              std::int64_t tokens, unsigned T_tokens, int heads, int rotated, int E,
                              Math<T> sign) {
  using V = Vector<T, width>;
  const std::int64_t token = own_token();
  const int half = E / 2;
  if (token >= tokens) return;
  const std::int64_t position = positions ? positions[token] : static_cast<unsigned>(token) % T_tokens;
  for (int e = static_cast<int>(threadIdx.x); e < half / width; e += static_cast<int>(blockDim.x)) {
    const Turn<T, width> turn(cosine, sine, position, half, e);
    const auto low = [&](int head) { return reinterpret_cast<V*>(x + (token * heads + head) * E) + e; };
    const auto high = [&](int head) {
      return reinterpret_cast<V*>(x + (token * heads + head) * E + half) + e;
    };
    const int step = static_cast<int>(blockDim.y);
    for (int first = static_cast<int>(threadIdx.y); first < rotated; first += batch * step) {
      Held<T, width> a[batch], b[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i)
        if (first + i * step < rotated) a[i].load(low(first + i * step)), b[i].load(high(first + i * step));
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        if (first + i * step >= rotated) continue;
        V left = a[i].open(), right = b[i].open();
        turn.apply(left, right, sign);
        *low(first + i * step) = left;
        *high(first + i * step) = right;
      }
    }
  }
}

template <class T, int width>
__global__ void join_kernel(const JoinArguments a) {
  using M = Math<T>;
  using V = Vector<T, width>;
  const std::int64_t token = own_token();
  if (token >= a.tokens) return;
  const int half = static_cast<int>(a.E) / 2, turned = static_cast<int>(a.parts[0].heads + a.parts[1].heads),
            heads = turned + static_cast<int>(a.parts[2].heads);
  const auto sequence = static_cast<unsigned>(token) / static_cast<unsigned>(a.T),
             t = static_cast<unsigned>(token) % static_cast<unsigned>(a.T);
  const std::int64_t position = a.positions ? a.positions[token] : t;
  const auto source = [&](int head) {
    const Part& part = head < a.parts[0].heads ? a.parts[0] : head < turned ? a.parts[1] : a.parts[2];
    const std::int64_t own = head < a.parts[0].heads ? head
                             : head < turned         ? head - a.parts[0].heads
                                                     : head - turned;
    return static_cast<const T*>(part.x) + sequence * part.batch_stride + t * part.token_stride +
           own * part.head_stride;
  };
  for (int e = static_cast<int>(threadIdx.x); e < half / width; e += static_cast<int>(blockDim.x)) {
    const Turn<T, width> turn(static_cast<const M*>(a.cosine), static_cast<const M*>(a.sine), position, half,
                              e);
    const int step = static_cast<int>(blockDim.y);
    for (int first = static_cast<int>(threadIdx.y); first < heads; first += batch * step) {
      Held<T, width> low[batch], high[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        if (first + i * step >= heads) continue;
        const T* from = source(first + i * step);
        low[i].load(reinterpret_cast<const V*>(from) + e);
        high[i].load(reinterpret_cast<const V*>(from + half) + e);
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int head = first + i * step;
        if (head >= heads) continue;
        V left = low[i].open(), right = high[i].open();
        if (head < turned) turn.apply(left, right, M(-1));
        T* to = static_cast<T*>(a.out) + (token * heads + head) * a.E;
        reinterpret_cast<V*>(to)[e] = left;
        reinterpret_cast<V*>(to + half)[e] = right;
      }
    }
  }
}

/// Blocks of about 256 threads: a place each of half a head, a third of the heads, tokens to fill up.
struct Grid {
  dim3 block;
  unsigned blocks;
  Grid(std::int64_t tokens, std::int64_t heads, std::int64_t vectors) {
    constexpr std::int64_t threads = 256;
    const std::int64_t x = std::clamp<std::int64_t>(vectors, 1, threads),
                       y = std::clamp<std::int64_t>((heads + batch - 1) / batch, 1, threads / x),
                       z = std::clamp<std::int64_t>(threads / (x * y), 1, 64);
    block = dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
    blocks = static_cast<unsigned>((tokens + z - 1) / z);
  }
};

/// Whether a vector of `bytes` may be read at `pointer`.
bool aligned(const void* pointer, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Whether halves of heads and the table are made of whole vectors. A vector of the table is wider than 16
/// bytes for bf16; it is aligned to its own size.
template <class T>
bool wide_table(std::int64_t E, const void* cosine, const void* sine) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(Math<T>)) * full_width<T>;
  return E / 2 % full_width<T> == 0 && aligned(cosine, bytes) && aligned(sine, bytes);
}

template <class T, int width>
void launch_as(const Arguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const Grid grid(a.tokens, a.rotated, a.E / 2 / width);
  rotate_kernel<T, width><<<grid.blocks, grid.block, 0, stream>>>(
      static_cast<T*>(a.x), static_cast<const M*>(a.cosine), static_cast<const M*>(a.sine), a.positions,
      a.tokens, static_cast<unsigned>(a.T), static_cast<int>(a.heads), static_cast<int>(a.rotated),
      static_cast<int>(a.E), a.inverse ? M(-1) : M(1));
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class T, int width>
void launch_as(const JoinArguments& a, cudaStream_t stream) {
  const std::int64_t heads = a.parts[0].heads + a.parts[1].heads + a.parts[2].heads;
  const Grid grid(a.tokens, heads, a.E / 2 / width);
  join_kernel<T, width><<<grid.blocks, grid.block, 0, stream>>>(a);
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace

void launch(const Arguments& a, cudaStream_t stream) {
  if (a.tokens == 0 || a.rotated == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    const bool wide = wide_table<T>(a.E, a.cosine, a.sine) && aligned(a.x, 16);
    wide ? launch_as<T, width>(a, stream) : launch_as<T, 1>(a, stream);
  });
}

void launch(const JoinArguments& a, cudaStream_t stream) {
  if (a.tokens == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    bool wide = wide_table<T>(a.E, a.cosine, a.sine) && aligned(a.out, 16);
    for (const Part& part : a.parts)
      wide = wide && aligned(part.x, 16) && part.batch_stride % width == 0 &&
             part.token_stride % width == 0 && part.head_stride % width == 0;
    wide ? launch_as<T, width>(a, stream) : launch_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::rope::cuda
