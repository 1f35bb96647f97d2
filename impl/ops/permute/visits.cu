// Which ranks tokens visit, and what travels with them, on the GPU: a thread an entry.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/permute/visits_launch.hpp"

namespace assay::impl::permute::cuda {

namespace {
constexpr unsigned threads = 256;

unsigned blocks_for(std::int64_t entries) { return static_cast<unsigned>((entries + threads - 1) / threads); }
__device__ std::int64_t entry() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void visited_kernel(rules::ChoiceView of, std::int32_t* __restrict__ visited) {
  const std::int64_t i = entry();
  if (i < of.N * of.ranks) visited[i] = of.visited(i / of.ranks, i % of.ranks);
}

__global__ void count_visits_kernel(const std::int32_t* __restrict__ visit_ends,
                                    const std::int32_t* __restrict__ expert_ends, std::int64_t ranks,
                                    std::int64_t each, std::int32_t* __restrict__ counts) {
  if (const std::int64_t r = entry(); r < ranks)
    rules::count_visits(visit_ends, expert_ends, each, r, counts);
}

template <int words>
__global__ void pack_kernel(rules::ChoiceView of, const std::int32_t* __restrict__ weights,
                            const std::int32_t* __restrict__ slots, const std::int32_t* __restrict__ ends,
                            std::int32_t* __restrict__ packed) {
  const std::int64_t i = entry(), row = i / of.A;
  if (row < ends[of.ranks - 1])
    rules::pack<words>(of, weights, slots[row], i % of.A, packed + row * of.A * (words + 1));
}

template <int words>
__global__ void unpack_kernel(std::int64_t M, std::int64_t A, const std::int32_t* __restrict__ packed,
                              std::int32_t* __restrict__ weights, std::int32_t* __restrict__ experts) {
  const std::int64_t i = entry();
  if (i < M * A)
    rules::unpack<words>(packed + i / A * A * (words + 1), A, i % A, weights + i * words, experts + i);
}

template <class M>
__global__ void by_choice_kernel(rules::ChoiceView of, const std::int32_t* __restrict__ visits,
                                 const M* __restrict__ of_visits, M* __restrict__ out) {
  if (const std::int64_t s = entry(); s < of.N * of.A) out[s] = rules::by_choice(of, visits, of_visits, s);
}
}  // namespace

void launch_visited(const rules::ChoiceView& of, std::int32_t* visited, cudaStream_t stream) {
  if (of.N == 0) return;
  visited_kernel<<<blocks_for(of.N * of.ranks), threads, 0, stream>>>(of, visited);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_count_visits(const std::int32_t* visit_ends, const std::int32_t* expert_ends, std::int64_t ranks,
                         std::int64_t each, std::int32_t* counts, cudaStream_t stream) {
  count_visits_kernel<<<blocks_for(ranks), threads, 0, stream>>>(visit_ends, expert_ends, ranks, each,
                                                                 counts);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_pack(const rules::ChoiceView& of, const std::int32_t* weights, int words,
                 const std::int32_t* slots, const std::int32_t* ends, std::int64_t most, std::int32_t* packed,
                 cudaStream_t stream) {
  if (most == 0) return;
  const auto kernel = words == 2 ? pack_kernel<2> : pack_kernel<1>;
  kernel<<<blocks_for(most * of.A), threads, 0, stream>>>(of, weights, slots, ends, packed);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_unpack(std::int64_t M, std::int64_t A, int words, const std::int32_t* packed,
                   std::int32_t* weights, std::int32_t* experts, cudaStream_t stream) {
  if (M == 0) return;
  const auto kernel = words == 2 ? unpack_kernel<2> : unpack_kernel<1>;
  kernel<<<blocks_for(M * A), threads, 0, stream>>>(M, A, packed, weights, experts);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_by_choice(const rules::ChoiceView& of, const std::int32_t* visits, bool wide,
                      const void* of_visits, void* out, cudaStream_t stream) {
  if (of.N == 0) return;
  const unsigned blocks = blocks_for(of.N * of.A);
  if (wide)
    by_choice_kernel<<<blocks, threads, 0, stream>>>(of, visits, static_cast<const double*>(of_visits),
                                                     static_cast<double*>(out));
  else
    by_choice_kernel<<<blocks, threads, 0, stream>>>(of, visits, static_cast<const float*>(of_visits),
                                                     static_cast<float*>(out));
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::permute::cuda
