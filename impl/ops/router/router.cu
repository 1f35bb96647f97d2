// The router on the GPU: a warp a token. Its experts are spread over the lanes, which hold their scores; an
// expert that is chosen is marked in its lane's word, and of equal scores the lower expert wins.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/router/router_launch.hpp"
#include "spec/ops/router/router.hpp"

namespace assay::impl::router::cuda {

using namespace assay::impl::cuda;
using spec::Scoring;

namespace {

constexpr int warps = 4;

struct How {
  std::int64_t N, X, A, groups, active_groups;
  bool sigmoid, renormalised;
  double factor;
};

How of(std::int64_t N, const spec::Experts& how) {
  return {N,
          how.count,
          how.active,
          how.groups,
          how.active_groups,
          how.scoring == Scoring::sigmoid,
          how.renormalised,
          how.scaling_factor};
}

template <class M>
__device__ M warp_max(M value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const M other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = other > value ? other : value;
  }
  return value;
}

/// The bits of a number, ordered as numbers are; -0 is 0.
__device__ __forceinline__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

/// The index, on every lane, of the largest of all lanes' values; of equal ones the lowest. A lane without
/// one has a negative index. With NaNs among them one is found all the same, which is not defined.
__device__ std::int32_t largest_of_warp(float best, std::int32_t index) {
  const unsigned mine = index < 0 ? 0 : ordered(best), top = __reduce_max_sync(0xffffffffu, mine);
  const auto place = static_cast<unsigned>(index);
  return static_cast<std::int32_t>(__reduce_min_sync(0xffffffffu, mine == top ? place : 0xffffffffu));
}
__device__ std::int32_t largest_of_warp(double best, std::int32_t index) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, best, offset);
    const std::int32_t its = __shfl_xor_sync(0xffffffffu, index, offset);
    const bool better = index < 0 || other > best || (!(best > other) && its < index);
    if (its >= 0 && better) best = other, index = its;
  }
  return index;
}

/// The best of a warp's values that no lane has taken: value i is of lane i % 32, its number i / 32, and that
/// bit of the lane's `taken`. `value(number)` of those below `size`.
template <class M, int held, class Value>
__device__ std::int32_t best_of_warp(std::int64_t size, std::uint64_t taken, int lane, const Value& value) {
  M best = 0;
  std::int32_t index = -1;
#pragma unroll
  for (int number = 0; number < held; ++number) {
    const std::int32_t i = lane + 32 * number;
    if (i >= size || (taken >> number & 1)) continue;
    if (const M v = value(number); index < 0 || v > best) best = v, index = i;
  }
  return largest_of_warp(best, index);
}

__device__ void take(std::uint64_t& taken, std::int32_t index, int lane) {
  if (index % 32 == lane) taken |= std::uint64_t{1} << (index / 32);
}

/// The bits of this lane's experts outside the best groups. The score of a group is the sum of its two best
/// values. `of_group` [groups] in shared memory, of this warp alone.
template <class M, class Value>
__device__ std::uint64_t outside_best_groups(const How& how, int lane, const Value& value, M* of_group) {
  const std::int64_t size = how.X / how.groups;
  for (std::int64_t g = lane; g < how.groups; g += 32) {
    M first = -INFINITY, second = -INFINITY;
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) {
      const M v = value(e);
      if (v > first)
        second = first, first = v;
      else if (v > second)
        second = v;
    }
    of_group[g] = first + second;
  }
  __syncwarp();
  std::uint64_t taken = 0;  // bit i: group lane + 32 i
  for (std::int64_t i = 0; i < how.active_groups; ++i)
    take(taken,
         best_of_warp<M, most_experts / 32>(how.groups, taken, lane,
                                            [&](int number) { return of_group[lane + 32 * number]; }),
         lane);
  __syncwarp();
  for (std::int64_t g = lane, bit = 0; g < how.groups; g += 32, ++bit) of_group[g] = M(taken >> bit & 1);
  __syncwarp();
  std::uint64_t outside = 0;
  for (std::int64_t e = lane, bit = 0; e < how.X; e += 32, ++bit)
    if (of_group[e / size] == M(0)) outside |= std::uint64_t{1} << bit;
  return outside;
}

/// A lane holds `held` experts at most. Shared memory of several groups of experts: [warps, groups].
template <class M, int held>
__global__ void forward_kernel(How how, const M* __restrict__ bias, M* scores, std::int32_t* experts,
                               M* __restrict__ weights, M* __restrict__ lse) {
  extern __shared__ double of_groups[];
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32, X = static_cast<int>(how.X);
  if (n >= how.N) return;
  M* row = scores + n * how.X;
  std::int32_t* chosen = experts + n * how.A;
  M score[held], value[held], top = -INFINITY, sum = 0;  // value: what is compared
#pragma unroll
  for (int i = 0; i < held; ++i)
    if (lane + 32 * i < X) score[i] = row[lane + 32 * i], top = score[i] > top ? score[i] : top;
  top = warp_max(top);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    if (lane + 32 * i >= X) continue;
    const M power = exp(score[i] - top);  // few: CUDA's own costs nothing here
    sum += power;
    score[i] = how.sigmoid ? M(1) / (M(1) + exp(-score[i])) : power;
  }
  sum = warp_sum(sum);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int e = lane + 32 * i;
    if (e >= X) continue;
    if (!how.sigmoid) score[i] /= sum;
    row[e] = score[i];
    value[i] = bias ? score[i] + bias[e] : score[i];
  }
  if (lane == 0) lse[n] = top + log(sum);
  __syncwarp();             // scores of other lanes' experts are read from here on
  std::uint64_t taken = 0;  // bit i: expert lane + 32 i
  if (how.groups > 1)
    taken = outside_best_groups(
        how, lane, [&](std::int64_t e) { return bias ? row[e] + bias[e] : row[e]; },
        reinterpret_cast<M*>(of_groups) + threadIdx.x / 32 * how.groups);
  for (std::int64_t a = 0; a < how.A; ++a) {
    const std::int32_t expert = best_of_warp<M, held>(X, taken, lane, [&](int i) { return value[i]; });
    take(taken, expert, lane);
    if (lane == 0) chosen[a] = expert;
  }
  __syncwarp();
  M of_chosen = 0;
  for (std::int64_t a = lane; a < how.A; a += 32) of_chosen += row[chosen[a]];
  of_chosen = warp_sum(of_chosen);
  const M factor = M(how.factor) / (how.renormalised ? of_chosen + M(spec::router::tiny) : M(1));
  for (std::int64_t a = lane; a < how.A; a += 32) weights[n * how.A + a] = row[chosen[a]] * factor;
}

/// Choices that a block counts.
constexpr std::int64_t counted = 4096;

/// Integers: in whatever order they are added, the sums are the same.
__global__ void counts_kernel(std::int64_t of_group, std::int64_t X, const std::int32_t* __restrict__ experts,
                              std::int32_t* __restrict__ counts) {
  __shared__ std::int32_t mine[most_experts];
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x) mine[e] = 0;
  __syncthreads();
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * counted,
                     end = begin + counted < of_group ? begin + counted : of_group, group = blockIdx.y;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    atomicAdd(mine + experts[group * of_group + i], 1);
  __syncthreads();
  for (std::int64_t e = threadIdx.x; e < X; e += blockDim.x)
    if (mine[e] > 0) atomicAdd(counts + group * X + e, mine[e]);
}

/// What a row's probabilities are scores over.
template <class M>
__device__ M sum_of_scores(const How& how, const M* row, int lane) {
  if (!how.sigmoid) return M(1);
  M sum = 0;
  for (std::int64_t e = lane; e < how.X; e += 32) sum += row[e];
  return warp_sum(sum) + M(spec::router::tiny);
}

template <class M>
__global__ void losses_kernel(How how, std::int64_t rows, const M* __restrict__ scores,
                              const std::int32_t* __restrict__ counts, const M* __restrict__ lse, bool sums,
                              double* __restrict__ terms) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (n >= how.N) return;
  const M* row = scores + n * how.X;
  const std::int32_t* count = counts + n / rows * how.X;
  const M all = sum_of_scores(how, row, lane);
  M chosen = 0, entropy = 0;
  for (std::int64_t e = lane; e < how.X; e += 32) {
    const M p = row[e] / all;
    chosen += M(count[e]) * p;
    if (p > 0) entropy -= p * log(p);
  }
  chosen = warp_sum(chosen);
  entropy = warp_sum(entropy);
  if (lane > 0) return;
  terms[n] = static_cast<double>(chosen) * static_cast<double>(how.X) / static_cast<double>(how.A * rows);
  terms[how.N + n] = static_cast<double>(lse[n]) * static_cast<double>(lse[n]);
  terms[2 * how.N + n] = static_cast<double>(entropy);
  if (!sums) return;
  terms[n] = 0;
  terms[3 * how.N + n] = static_cast<double>(all);
}

/// partial [blocks, X]: each block's sum of the probabilities of `summed_rows` rows, in their order.
template <class M>
__global__ void probabilities_kernel(How how, const M* __restrict__ scores, const double* __restrict__ all,
                                     double* __restrict__ partial) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * summed_rows,
                     end = begin + summed_rows < how.N ? begin + summed_rows : how.N;
  for (std::int64_t e = threadIdx.x; e < how.X; e += blockDim.x) {
    double sum = 0;
    for (std::int64_t n = begin; n < end; ++n)
      sum += static_cast<double>(scores[n * how.X + e] / static_cast<M>(all[n]));
    partial[blockIdx.x * how.X + e] = sum;
  }
}

template <class T>
__global__ void backward_kernel(How how, BackwardArguments given) {
  using M = Math<T>;
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (n >= how.N) return;
  const std::int64_t rows = how.N / given.groups;
  const M *row = static_cast<const M*>(given.scores) + n * how.X,
          *w = static_cast<const M*>(given.weights) + n * how.A,
          *dw = static_cast<const M*>(given.dweights) + n * how.A;
  const std::int32_t *chosen = given.experts + n * how.A, *count = given.counts + n / rows * how.X;
  const double Z = *given.tokens, of_share = given.balance * static_cast<double>(how.X) / Z;
  const M of_count = M(of_share / static_cast<double>(how.A * rows)), of_lse = M(2 * given.z / Z),
          lse = static_cast<const M*>(given.lse)[n];
  M sum = 0, along = 0;
  for (std::int64_t a = 0; a < how.A; ++a) sum += row[chosen[a]], along += dw[a] * w[a];
  sum += M(spec::router::tiny);
  const M factor = M(how.factor);
  const auto of_weight = [&](std::int64_t a) {
    return how.renormalised ? (factor * dw[a] - along) / sum : factor * dw[a];
  };
  const auto of_expert = [&](std::int64_t e) {
    return given.shares ? M(of_share * given.shares[e]) : of_count * M(count[e]);
  };
  M all = 1, balanced = 0;
  if (of_count != M(0)) {
    all = sum_of_scores(how, row, lane);
    for (std::int64_t e = lane; e < how.X; e += 32) balanced += of_expert(e) * (row[e] / all);
    balanced = warp_sum(balanced);
  }
  M inner = balanced;  // of softmax
  for (std::int64_t a = 0; a < how.A; ++a) inner += of_weight(a) * row[chosen[a]];
  for (std::int64_t e = lane; e < how.X; e += 32) {
    const M p = row[e];
    M d = of_expert(e);
    if (how.sigmoid) d = (d - balanced) / all;
    for (std::int64_t a = 0; a < how.A; ++a)
      if (chosen[a] == e) d += of_weight(a);
    M out = how.sigmoid ? d * p * (M(1) - p) : p * (d - inner);
    if (of_lse != M(0))
      out += of_lse * lse * (how.sigmoid ? exp(static_cast<const M*>(given.logits)[n * how.X + e] - lse) : p);
    static_cast<T*>(given.dlogits)[n * how.X + e] = narrow<T>(out);
  }
}

unsigned blocks(std::int64_t N) { return static_cast<unsigned>((N + warps - 1) / warps); }

}  // namespace

void launch_forward(bool wide, std::int64_t N, const spec::Experts& how, const void* bias, void* scores,
                    std::int32_t* experts, void* weights, void* lse, cudaStream_t stream) {
  if (N == 0) return;
  const auto launch = [&](auto element) {
    using M = decltype(element);
    const std::size_t shared = how.groups > 1 ? static_cast<std::size_t>(warps * how.groups) * sizeof(M) : 0;
    const auto kernel = how.count <= 64    ? forward_kernel<M, 2>
                        : how.count <= 256 ? forward_kernel<M, 8>
                                           : forward_kernel<M, most_experts / 32>;
    kernel<<<blocks(N), warps * 32, shared, stream>>>(of(N, how), static_cast<const M*>(bias),
                                                      static_cast<M*>(scores), experts,
                                                      static_cast<M*>(weights), static_cast<M*>(lse));
  };
  wide ? launch(double{}) : launch(float{});
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_counts(std::int64_t N, std::int64_t groups, const spec::Experts& how, const std::int32_t* experts,
                   std::int32_t* counts, cudaStream_t stream) {
  if (N == 0) return;
  const std::int64_t of_group = N / groups * how.active;
  const dim3 grid(static_cast<unsigned>((of_group + counted - 1) / counted), static_cast<unsigned>(groups));
  counts_kernel<<<grid, 256, 0, stream>>>(of_group, how.count, experts, counts);
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_losses(bool wide, std::int64_t N, std::int64_t groups, const spec::Experts& how,
                   const void* scores, const std::int32_t* counts, const void* lse, double* terms,
                   double* partial, cudaStream_t stream) {
  if (N == 0) return;
  const auto launch = [&](auto element) {
    using M = decltype(element);
    const auto* of_rows = static_cast<const M*>(scores);
    losses_kernel<M><<<blocks(N), warps * 32, 0, stream>>>(
        of(N, how), N / groups, of_rows, counts, static_cast<const M*>(lse), partial != nullptr, terms);
    if (partial)
      probabilities_kernel<M><<<static_cast<unsigned>(sums(N)), threads_for(how.count, 1024), 0, stream>>>(
          of(N, how), of_rows, terms + 3 * N, partial);
  };
  wide ? launch(double{}) : launch(float{});
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(const spec::Experts& how, const BackwardArguments& arguments, cudaStream_t stream) {
  if (arguments.N == 0) return;
  with_element(arguments.dtype, [&](auto element) {
    using T = decltype(element);
    backward_kernel<T><<<blocks(arguments.N), warps * 32, 0, stream>>>(of(arguments.N, how), arguments);
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::router::cuda
