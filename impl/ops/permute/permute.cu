// Rows to their experts and back on the GPU. The order is a counting sort that keeps the order of slots: each
// warp counts its chunk, one block sums what the chunks before have, each warp places its chunk. Results do
// not depend on the order of warps.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/permute/permute_launch.hpp"

namespace assay::impl::permute::cuda {

using namespace assay::impl::cuda;

namespace {

/// A warp's chunk, 32 slots at a time. `mine` [X]: what the warp knows of each expert.
template <class Place>
__device__ void walk(std::int64_t slot_count, const std::int32_t* experts, std::int32_t* mine,
                     const Place& place) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * chunk;
  for (std::int64_t s = begin + lane; s < begin + chunk; s += 32) {
    const std::int32_t expert = s < slot_count ? experts[s] : -1;
    const unsigned alike = __match_any_sync(0xffffffffu, expert);
    if (s < slot_count) place(s, expert, expert < 0 ? -1 : mine[expert] + __popc(alike & ((1u << lane) - 1)));
    __syncwarp();
    if (expert >= 0 && __ffs(static_cast<int>(alike)) - 1 == lane) mine[expert] += __popc(alike);
    __syncwarp();
  }
}

__global__ void count_kernel(std::int64_t slot_count, std::int64_t X,
                             const std::int32_t* __restrict__ experts, std::int32_t* __restrict__ counts) {
  extern __shared__ std::int32_t mine[];
  for (std::int64_t e = threadIdx.x; e < X; e += 32) mine[e] = 0;
  __syncwarp();
  walk(slot_count, experts, mine, [](std::int64_t, std::int32_t, std::int32_t) {});
  for (std::int64_t e = threadIdx.x; e < X; e += 32) counts[blockIdx.x * X + e] = mine[e];
}

/// counts [chunks, X] become, of each chunk's slots of an expert, how many the chunks before have. Several
/// are read before the first is written, and `ends` is summed in shared memory: latency is all that counts
/// here.
__global__ void before_kernel(std::int64_t chunk_count, std::int64_t X, std::int32_t* __restrict__ counts,
                              std::int32_t* __restrict__ ends) {
  constexpr int ahead = 16;
  extern __shared__ std::int32_t of_experts[];
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x) {
    std::int32_t before = 0;
    for (std::int64_t c = 0; c < chunk_count; c += ahead) {
      std::int32_t read[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) read[i] = c + i < chunk_count ? counts[(c + i) * X + e] : 0;
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        if (c + i < chunk_count) counts[(c + i) * X + e] = before;
        before += read[i];
      }
    }
    of_experts[e] = before;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (std::int64_t e = 1; e < X; ++e) of_experts[e] += of_experts[e - 1];
  __syncthreads();
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x) ends[e] = of_experts[e];
}

__global__ void place_kernel(std::int64_t slot_count, std::int64_t X,
                             const std::int32_t* __restrict__ experts,
                             const std::int32_t* __restrict__ counts, const std::int32_t* __restrict__ ends,
                             std::int32_t* __restrict__ slots, std::int32_t* __restrict__ rows) {
  extern __shared__ std::int32_t mine[];
  for (std::int64_t e = threadIdx.x; e < X; e += 32)
    mine[e] = counts[blockIdx.x * X + e] + (e > 0 ? ends[e - 1] : 0);
  __syncwarp();
  walk(slot_count, experts, mine, [&](std::int64_t s, std::int32_t, std::int32_t row) {
    if (row >= 0) slots[row] = static_cast<std::int32_t>(s);
    rows[s] = row;
  });
}

/// Of each group of tokens and expert: the first row of all, the first that is kept, and the first place of
/// what is dropped, which stands behind all that is kept.
__global__ void firsts_kernel(Limit limit) {
  const std::int64_t G = limit.G, X = limit.X;
  const auto kept = [&](std::int64_t g, std::int64_t e) {
    const std::int32_t count = limit.choices[g * X + e];
    return count < limit.most ? count : static_cast<std::int32_t>(limit.most);
  };
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x) {
    std::int32_t sum = 0;
    for (std::int64_t g = 0; g < G; ++g) sum += kept(g, e);
    limit.ends[e] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (std::int64_t e = 1; e < X; ++e) limit.ends[e] += limit.ends[e - 1];
  __syncthreads();
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x) {
    std::int32_t of_all = e > 0 ? limit.all_ends[e - 1] : 0, row = e > 0 ? limit.ends[e - 1] : 0,
                 dropped = limit.ends[X - 1] + of_all - row;
    for (std::int64_t g = 0; g < G; ++g) {
      const std::int32_t count = limit.choices[g * X + e], mine = kept(g, e);
      limit.firsts[g * X + e] = of_all;
      limit.firsts[(G + g) * X + e] = row;
      limit.firsts[(2 * G + g) * X + e] = dropped;
      of_all += count, row += mine, dropped += count - mine;
    }
  }
}

__global__ void limit_kernel(Limit limit) {
  const std::int64_t s = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (s >= limit.slot_count) return;
  const std::int64_t group = s / (limit.slot_count / limit.G), all = limit.G * limit.X;
  const std::int32_t* first = limit.firsts + group * limit.X + limit.experts[s];
  const std::int32_t place = limit.all_rows[s] - first[0];
  const bool kept = place < limit.most;
  const std::int32_t row =
      kept ? first[all] + place : first[2 * all] + place - static_cast<std::int32_t>(limit.most);
  limit.slots[row] = static_cast<std::int32_t>(s);
  limit.rows[s] = kept ? row : -1;
}

/// A token's row is read once and written once for each of its experts: rows taken in the order of the
/// experts would be read from memory again for every one of them.
template <class T, int width>
__global__ void gather_kernel(const T* __restrict__ x, const std::int32_t* __restrict__ rows,
                              T* __restrict__ y, std::int64_t D, std::int64_t A) {
  using V = Vector<T, width>;
  const std::int64_t n = blockIdx.x;
  for (std::int64_t i = threadIdx.x; i < D / width; i += blockDim.x) {
    const V value = reinterpret_cast<const V*>(x + n * D)[i];
#pragma unroll 4
    for (std::int64_t a = 0; a < A; ++a)
      if (const std::int64_t row = rows[n * A + a]; row >= 0) reinterpret_cast<V*>(y + row * D)[i] = value;
  }
}

template <class T, int width>
__global__ void combine_kernel(const T* __restrict__ base, const T* __restrict__ from,
                               const std::int32_t* __restrict__ rows, T* __restrict__ y, std::int64_t D,
                               std::int64_t A) {
  using V = Vector<T, width>;
  const std::int64_t n = blockIdx.x;
  for (std::int64_t i = threadIdx.x; i < D / width; i += blockDim.x) {
    Math<T> sum[width] = {};
    if (base) {
      const V first = reinterpret_cast<const V*>(base + n * D)[i];
#pragma unroll
      for (int k = 0; k < width; ++k) sum[k] = widen(first.element[k]);
    }
#pragma unroll 4
    for (std::int64_t a = 0; a < A; ++a) {
      const std::int64_t row = rows[n * A + a];
      if (row < 0) continue;
      const V part = reinterpret_cast<const V*>(from + row * D)[i];
#pragma unroll
      for (int k = 0; k < width; ++k) sum[k] += widen(part.element[k]);
    }
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) out.element[k] = narrow<T>(sum[k]);
    reinterpret_cast<V*>(y + n * D)[i] = out;
  }
}

}  // namespace

void launch_order(std::int64_t slot_count, std::int64_t X, const std::int32_t* experts, std::int32_t* counts,
                  std::int32_t* slots, std::int32_t* rows, std::int32_t* ends, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(chunks(slot_count));
  const std::size_t shared = static_cast<std::size_t>(X) * sizeof(std::int32_t);
  if (blocks > 0) count_kernel<<<blocks, 32, shared, stream>>>(slot_count, X, experts, counts);
  before_kernel<<<1, threads_for(X, 1024), shared, stream>>>(blocks, X, counts, ends);
  if (blocks > 0)
    place_kernel<<<blocks, 32, shared, stream>>>(slot_count, X, experts, counts, ends, slots, rows);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_limit(const Limit& limit, cudaStream_t stream) {
  firsts_kernel<<<1, threads_for(limit.X, 1024), 0, stream>>>(limit);
  if (limit.slot_count > 0)
    limit_kernel<<<static_cast<unsigned>((limit.slot_count + 255) / 256), 256, 0, stream>>>(limit);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_gather(Dtype dtype, std::int64_t N, std::int64_t D, std::int64_t A, const void* x,
                   const std::int32_t* rows, void* y, cudaStream_t stream) {
  if (N == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    const std::int64_t row = D * static_cast<std::int64_t>(sizeof(T));
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    const auto blocks = static_cast<unsigned>(N);
    if (aligned_16(from, row) && aligned_16(to, row))
      gather_kernel<T, width><<<blocks, threads_for(D / width, 256), 0, stream>>>(from, rows, to, D, A);
    else
      gather_kernel<T, 1><<<blocks, threads_for(D, 256), 0, stream>>>(from, rows, to, D, A);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_combine(Dtype dtype, std::int64_t N, std::int64_t D, std::int64_t A, const void* base,
                    const void* from, const std::int32_t* rows, void* y, cudaStream_t stream) {
  if (N == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    constexpr int width = full_width<T>;
    const std::int64_t row = D * static_cast<std::int64_t>(sizeof(T));
    const auto *bases = static_cast<const T*>(base), *parts = static_cast<const T*>(from);
    auto* to = static_cast<T*>(y);
    const auto blocks = static_cast<unsigned>(N);
    if (aligned_16(bases, row) && aligned_16(parts, row) && aligned_16(to, row))
      combine_kernel<T, width>
          <<<blocks, threads_for(D / width, 256), 0, stream>>>(bases, parts, rows, to, D, A);
    else
      combine_kernel<T, 1><<<blocks, threads_for(D, 256), 0, stream>>>(bases, parts, rows, to, D, A);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::permute::cuda
