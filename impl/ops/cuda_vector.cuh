#pragma once
// Element types, their arithmetic type, 16-byte vectors and block-wide sums for the kernels.
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "spec/tolerance.hpp"

namespace assay::impl::cuda {

/// Arithmetic type of an element: fp32 for bf16, else its own.
template <class T>
struct MathOf {
  using type = T;
};
template <>
struct MathOf<__nv_bfloat16> {
  using type = float;
};
template <class T>
using Math = typename MathOf<T>::type;

template <class T>
__device__ __forceinline__ Math<T> widen(T value) {
  return static_cast<Math<T>>(value);
}
template <class T>
__device__ __forceinline__ T narrow(Math<T> value) {
  return static_cast<T>(value);
}

/// `width` elements moved by one access.
template <class T, int width>
struct alignas(sizeof(T) * width) Vector {
  T element[width];
};
/// Elements in 16 bytes.
template <class T>
constexpr int full_width = 16 / static_cast<int>(sizeof(T));

/// A vector as whole words. Several loads are under way together only while nobody looks into them: elements
/// of 16 bits are taken apart where they are loaded, words where they are opened.
template <class T, int width>
class Held {
 public:
  using V = Vector<T, width>;
  __device__ __forceinline__ void load(const V* from) {
    const Held* words = reinterpret_cast<const Held*>(from);
    *this = *words;
  }
  __device__ __forceinline__ void close(const V& vector) { memcpy(word_, &vector, sizeof vector); }
  __device__ __forceinline__ V open() const {
    V vector;
    memcpy(&vector, word_, sizeof vector);
    return vector;
  }

 private:
  static constexpr bool whole = sizeof(V) % sizeof(std::uint32_t) == 0;
  using Word = std::conditional_t<whole, std::uint32_t, std::uint16_t>;
  alignas(V) Word word_[sizeof(V) / sizeof(Word)];
};

/// Calls `call` with a value of the element type, which a kernel is then instantiated for.
template <class Call>
void with_element(Dtype dtype, const Call& call) {
  switch (dtype) {
    case Dtype::f64:
      return call(double{});
    case Dtype::f32:
      return call(float{});
    case Dtype::bf16:
      return call(__nv_bfloat16{});
  }
}

/// Threads of a block that walks through `items` together: whole warps, at most `most`.
inline unsigned threads_for(std::int64_t items, std::int64_t most = 512) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + 31) / 32 * 32, 32, most));
}

/// 1 / x, in fp32 with a relative error of at most 2^-23, and 0 where it is below 2^-126. A correctly rounded
/// quotient is a subroutine, which takes longer than an update or a gate takes to move its entries.
__device__ __forceinline__ float reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}
__device__ __forceinline__ double reciprocal(double x) { return 1 / x; }

/// exp(x), in fp32 with a relative error of at most 2^-22 + 2^-23 |x|, and 0 where it is below 2^-126:
/// log2(e) and the product with x are rounded. Ops that call it count |x| in their tolerances.
__device__ __forceinline__ float exponential(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634f));
  return power;
}
__device__ __forceinline__ double exponential(double x) { return exp(x); }

/// Sum over a warp, the same on every lane, in a fixed order.
template <class M>
__device__ M warp_sum(M value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Sum over the threads of a block, the same on every thread, in a fixed order. `scratch` holds 33 values;
/// block size is a multiple of 32, at most 1024.
template <class M>
__device__ M block_sum(M value, M* scratch) {
  value = warp_sum(value);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  __syncthreads();  // scratch may still be read from the call before
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  if (warp == 0) {
    const M sum = warp_sum(lane < warps ? scratch[lane] : M(0));
    if (lane == 0) scratch[32] = sum;
  }
  __syncthreads();
  return scratch[32];
}

}  // namespace assay::impl::cuda
