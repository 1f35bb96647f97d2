// rope on the GPU, in place: one block per token, each thread turns vectors of the lower half of a head with
// their partners in the upper half.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/rope_launch.hpp"

namespace assay::impl::rope::cuda {

using namespace assay::impl::cuda;

namespace {

template <class T, int width>
__global__ void rotate_kernel(T* __restrict__ x, const Math<T>* __restrict__ cosine,
                              const Math<T>* __restrict__ sine, const std::int32_t* __restrict__ positions,
                              int T_tokens, int heads, int rotated, int E, Math<T> sign) {
  using M = Math<T>;
  using V = Vector<T, width>;
  using A = Vector<M, width>;
  const std::int64_t token = blockIdx.x;
  const int half = E / 2, vectors = half / width;  // per head
  const std::int64_t position = positions ? positions[token] : token % T_tokens;
  const A *cosines = reinterpret_cast<const A*>(cosine + position * half),
          *sines = reinterpret_cast<const A*>(sine + position * half);
  for (int i = static_cast<int>(threadIdx.x); i < rotated * vectors; i += static_cast<int>(blockDim.x)) {
    const int head = i / vectors, e = i % vectors;
    T* first = x + (token * heads + head) * E;
    V *low = reinterpret_cast<V*>(first) + e, *high = reinterpret_cast<V*>(first + half) + e;
    V a = *low, b = *high;
    const A c = cosines[e], s = sines[e];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const M left = widen(a.element[k]), right = widen(b.element[k]), turn = sign * s.element[k];
      a.element[k] = narrow<T>(left * c.element[k] - right * turn);
      b.element[k] = narrow<T>(right * c.element[k] + left * turn);
    }
    *low = a;
    *high = b;
  }
}

template <class T, int width>
void launch_as(const Arguments& a, cudaStream_t stream) {
  using M = Math<T>;
  const unsigned threads = threads_for(a.rotated * (a.E / 2 / width));
  rotate_kernel<T, width><<<static_cast<unsigned>(a.tokens), threads, 0, stream>>>(
      static_cast<T*>(a.x), static_cast<const M*>(a.cosine), static_cast<const M*>(a.sine), a.positions,
      static_cast<int>(a.T), static_cast<int>(a.heads), static_cast<int>(a.rotated), static_cast<int>(a.E),
      a.inverse ? M(-1) : M(1));
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace

void launch(const Arguments& a, cudaStream_t stream) {
  if (a.tokens == 0 || a.rotated == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    // A vector of the table is wider than 16 bytes for bf16; it is aligned to its own size.
    constexpr auto table_bytes = static_cast<std::int64_t>(sizeof(Math<T>)) * width;
    const bool wide = a.E / 2 % width == 0 && reinterpret_cast<std::uintptr_t>(a.x) % 16 == 0 &&
                      reinterpret_cast<std::uintptr_t>(a.cosine) % table_bytes == 0 &&
                      reinterpret_cast<std::uintptr_t>(a.sine) % table_bytes == 0;
    wide ? launch_as<T, width>(a, stream) : launch_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::rope::cuda
