// q, k and v of latent attention from their projections, and back. A block works on one token; a thread
// writes vectors of the result, each from one vector of an input, or from a pair of vectors that turn.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/latent_attention/latent_attention_launch.hpp"
#include "impl/ops/rope/rope_turn.cuh"

namespace assay::impl::latent_attention::cuda {

using namespace assay::impl::cuda;

namespace {

/// The turned entries of one token: which entries are partners, and by which angles they turn.
template <class T, int width>
class PairTurn {
 public:
  using M = Math<T>;
  using V = Vector<T, width>;

  __device__ PairTurn(const Arguments& a, std::int64_t token, M sign)
      : half_(static_cast<int>(a.R) / 2), neighbours_(a.neighbours), sign_(sign) {
    const std::int64_t position =
        a.positions ? a.positions[token] : static_cast<unsigned>(token) % static_cast<unsigned>(a.T);
    cosine_ = static_cast<const M*>(a.cosine) + position * half_;
    sine_ = static_cast<const M*>(a.sine) + position * half_;
  }
  /// Where the partners of the vector at entry e begin: within it, where neighbours are.
  __device__ int partner(int e) const {
    if (neighbours_) return width > 1 ? e : e ^ 1;
    return e < half_ ? e + half_ : e - half_;
  }
  /// The vector at entry e turned, from its own entries and those at partner(e).
  __device__ V operator()(int e, const M (&own)[width], const M (&other)[width]) const {
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const int entry = e + k, pair = neighbours_ ? entry / 2 : entry % half_;
      const bool first = neighbours_ ? entry % 2 == 0 : entry < half_;
      const M mine = own[k], partners = neighbours_ && width > 1 ? other[k ^ 1] : other[k];
      M low = first ? mine : partners, high = first ? partners : mine;
      rope::cuda::turn(low, high, cosine_[pair], sign_ * sine_[pair]);
      out.element[k] = narrow<T>(first ? low : high);
    }
    return out;
  }

 private:
  const int half_;
  const bool neighbours_;
  const M sign_;
  const M *cosine_, *sine_;
};

template <class T, int width>
__device__ Vector<T, width> vector_at(const T* from) {
  return *reinterpret_cast<const Vector<T, width>*>(from);
}

template <class T, int width>
__device__ void widen_at(const T* from, Math<T> (&to)[width]) {
  const Vector<T, width> vector = vector_at<T, width>(from);
#pragma unroll
  for (int k = 0; k < width; ++k) to[k] = widen(vector.element[k]);
}

/// The vector at entry e of the R turned entries at `head`.
template <class T, int width>
__device__ Vector<T, width> turned(const PairTurn<T, width>& turn, const T* head, int e) {
  Math<T> own[width], other[width];
  widen_at<T, width>(head + e, own);
  widen_at<T, width>(head + turn.partner(e), other);
  return turn(e, own, other);
}

template <class T, int width>
__global__ void expand_kernel(const Arguments a) {
  const std::int64_t token = blockIdx.x;
  const int H = static_cast<int>(a.H), E = static_cast<int>(a.E), W = static_cast<int>(a.W),
            kept = E - static_cast<int>(a.R), keys = H * E, values = 2 * keys, columns = values + H * W;
  const T *query = static_cast<const T*>(a.query) + token * keys,
          *key_value = static_cast<const T*>(a.key_value) + token * H * (kept + W),
          *shared_key = static_cast<const T*>(a.shared_key) + token * a.R;
  T* qkv = static_cast<T*>(a.qkv) + token * columns;
  const PairTurn<T, width> turn(a, token, Math<T>(1));
  for (int column = static_cast<int>(threadIdx.x) * width; column < columns;
       column += static_cast<int>(blockDim.x) * width) {
    Vector<T, width> out;
    if (column >= values) {
      const int head = (column - values) / W, e = (column - values) % W;
      out = vector_at<T, width>(key_value + head * (kept + W) + kept + e);
    } else {
      const bool of_key = column >= keys;
      const int head = (of_key ? column - keys : column) / E, e = (of_key ? column - keys : column) % E;
      const T* from = of_key ? key_value + head * (kept + W) : query + head * E;
      out = e < kept ? vector_at<T, width>(from + e)
                     : turned(turn, of_key ? shared_key : from + kept, e - kept);
    }
    *reinterpret_cast<Vector<T, width>*>(qkv + column) = out;
  }
}

/// The vector at entry e of the sum over heads of dk's turned entries.
template <class T, int width>
__device__ void sum_over_heads(const T* turned_entries, int H, int E, int e, Math<T> (&sums)[width]) {
#pragma unroll
  for (int k = 0; k < width; ++k) sums[k] = 0;
  for (int head = 0; head < H; ++head) {
    Math<T> one[width];
    widen_at<T, width>(turned_entries + head * E + e, one);
#pragma unroll
    for (int k = 0; k < width; ++k) sums[k] += one[k];
  }
}

template <class T, int width>
__global__ void expand_backward_kernel(const Arguments a) {
  const std::int64_t token = blockIdx.x;
  const int H = static_cast<int>(a.H), E = static_cast<int>(a.E), W = static_cast<int>(a.W),
            R = static_cast<int>(a.R), kept = E - R, queries = H * E, both = queries + H * (kept + W);
  T *d_query = static_cast<T*>(a.query) + token * queries,
    *d_key_value = static_cast<T*>(a.key_value) + token * H * (kept + W),
    *d_shared_key = static_cast<T*>(a.shared_key) + token * R;
  const T *dq = static_cast<const T*>(a.qkv) + token * (2 * queries + H * W), *dk = dq + queries,
          *dv = dk + queries;
  const PairTurn<T, width> turn(a, token, Math<T>(-1));
  // The sums over heads take longest and are begun first.
  for (int item = static_cast<int>(threadIdx.x) * width; item < R + both;
       item += static_cast<int>(blockDim.x) * width) {
    const int column = item - R;
    Vector<T, width> out;
    T* to;
    if (column < 0) {
      Math<T> own[width], other[width];
      sum_over_heads<T, width>(dk + kept, H, E, item, own);
      sum_over_heads<T, width>(dk + kept, H, E, turn.partner(item), other);
      out = turn(item, own, other);
      to = d_shared_key + item;
    } else if (column < queries) {
      const int e = column % E;
      out = e < kept ? vector_at<T, width>(dq + column) : turned(turn, dq + (column - e) + kept, e - kept);
      to = d_query + column;
    } else {
      const int head = (column - queries) / (kept + W), e = (column - queries) % (kept + W);
      out = vector_at<T, width>(e < kept ? dk + head * E + e : dv + head * W + (e - kept));
      to = d_key_value + (column - queries);
    }
    *reinterpret_cast<Vector<T, width>*>(to) = out;
  }
}

/// Whether every part of a head, and both halves of what turns, are made of whole vectors.
template <class T>
bool whole_vectors(const Arguments& a) {
  constexpr std::int64_t width = full_width<T>;
  for (const std::int64_t extent : {a.E - a.R, a.neighbours ? a.R : a.R / 2, a.W})
    if (extent % width != 0) return false;
  for (const void* pointer : {a.query, a.key_value, a.shared_key, a.qkv})
    if (!aligned_16(pointer, 16)) return false;
  return true;
}

constexpr unsigned block_threads = 256;

}  // namespace

void launch_forward(const Arguments& a, cudaStream_t stream) {
  if (a.tokens == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const auto blocks = static_cast<unsigned>(a.tokens);
    if (whole_vectors<T>(a))
      expand_kernel<T, full_width<T>><<<blocks, block_threads, 0, stream>>>(a);
    else
      expand_kernel<T, 1><<<blocks, block_threads, 0, stream>>>(a);
    ASSAY_CUDA_CHECK_LAUNCH();
  });
}

void launch_backward(const Arguments& a, cudaStream_t stream) {
  if (a.tokens == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const auto blocks = static_cast<unsigned>(a.tokens);
    if (whole_vectors<T>(a))
      expand_backward_kernel<T, full_width<T>><<<blocks, block_threads, 0, stream>>>(a);
    else
      expand_backward_kernel<T, 1><<<blocks, block_threads, 0, stream>>>(a);
    ASSAY_CUDA_CHECK_LAUNCH();
  });
}

}  // namespace assay::impl::latent_attention::cuda
