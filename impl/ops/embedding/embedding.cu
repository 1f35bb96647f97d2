// embedding on the GPU. Forward: a block copies a row. Backward: ids arrive sorted, one warp owns an id and
// 32 vectors of columns, and adds that id's rows in order. No atomics: the same bits at every run.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/embedding/embedding_launch.hpp"

namespace assay::impl::embedding::cuda {

using namespace assay::impl::cuda;

namespace {

/// Block n: row n of y.
template <class T, int width>
__global__ void forward_kernel(const T* __restrict__ table, const std::int64_t* __restrict__ ids,
                               T* __restrict__ y, std::int64_t D, std::int64_t foreign) {
  using V = Vector<T, width>;
  const std::int64_t n = blockIdx.x, id = ids[n], vectors = D / width;
  V* to = reinterpret_cast<V*>(y + n * D);
  if (id == foreign) {
    V zeros;
#pragma unroll
    for (int k = 0; k < width; ++k) zeros.element[k] = narrow<T>(0);
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) to[i] = zeros;
    return;
  }
  const V* from = reinterpret_cast<const V*>(table + id * D);
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) to[i] = from[i];
}

template <class T, int width>
void forward_as(const ForwardArguments& a, cudaStream_t stream) {
  forward_kernel<T, width><<<static_cast<unsigned>(a.N), threads_for(a.D / width), 0, stream>>>(
      static_cast<const T*>(a.table), a.ids, static_cast<T*>(a.y), a.D, a.foreign);
  ASSAY_CUDA_CHECK_LAUNCH();
}

/// Warp (x, y): the run of equal ids that starts at place x (nothing if none does), column vectors 32 y ...
template <class T, int width>
__global__ void backward_kernel(const T* __restrict__ dy, const std::int64_t* __restrict__ ids,
                                const std::int64_t* __restrict__ places, Math<T>* __restrict__ dtable,
                                std::int64_t N, std::int64_t D, std::int64_t foreign) {
  using M = Math<T>;
  using V = Vector<T, width>;
  const std::int64_t begin = blockIdx.x;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * 32 + threadIdx.x;
  const std::int64_t id = ids[begin];
  if (id == foreign || (begin > 0 && ids[begin - 1] == id)) return;
  if (i >= D / width) return;
  M* target = dtable + id * D + i * width;
  M sum[width];
#pragma unroll
  for (int k = 0; k < width; ++k) sum[k] = target[k];
  // Rows are fetched several at a time and added one by one.
  constexpr int ahead = 4;
  for (std::int64_t n = begin; n < N && ids[n] == id; n += ahead) {
    V rows[ahead];
    bool mine[ahead];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      mine[a] = n + a < N && ids[n + a] == id;
      if (mine[a]) rows[a] = reinterpret_cast<const V*>(dy + places[n + a] * D)[i];
    }
#pragma unroll
    for (int a = 0; a < ahead; ++a)
#pragma unroll
      for (int k = 0; k < width; ++k)
        if (mine[a]) sum[k] += widen(rows[a].element[k]);
  }
#pragma unroll
  for (int k = 0; k < width; ++k) target[k] = sum[k];
}

template <class T, int width>
void backward_as(const BackwardArguments& a, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(a.N), static_cast<unsigned>((a.D / width + 31) / 32));
  backward_kernel<T, width><<<blocks, 32, 0, stream>>>(static_cast<const T*>(a.dy), a.ids, a.places,
                                                       static_cast<Math<T>*>(a.dtable), a.N, a.D, a.foreign);
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace

void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t row = a.D * static_cast<std::int64_t>(sizeof(T));
    aligned_16(a.table, row) && aligned_16(a.y, row) ? forward_as<T, full_width<T>>(a, stream)
                                                     : forward_as<T, 1>(a, stream);
  });
}

void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  if (a.N == 0) return;
  with_element(a.dtype, [&](auto element) {
    using T = decltype(element);
    aligned_16(a.dy, a.D * static_cast<std::int64_t>(sizeof(T))) ? backward_as<T, full_width<T>>(a, stream)
                                                                 : backward_as<T, 1>(a, stream);
  });
}

}  // namespace assay::impl::embedding::cuda
