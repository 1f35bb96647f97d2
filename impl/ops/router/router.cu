// The router on the GPU: a warp a token. Its experts are spread over the lanes; an expert that is chosen is
// marked in its lane's word, and of equal scores the lower expert wins.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/router/router_launch.hpp"
#include "spec/ops/router.hpp"

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

/// The best of the indices below `size` that no lane has taken: index i is of lane i % 32, bit i / 32 of that
/// lane's `taken`. Of equal values the lower index; with NaNs among them one is found all the same, which is
/// not defined. Returns the index, on every lane.
template <class Value>
__device__ std::int32_t best_of_warp(std::int64_t size, std::uint64_t taken, int lane, const Value& value) {
  decltype(value(0)) best = 0;
  std::int32_t index = -1;
  for (std::int64_t i = lane, bit = 0; i < size; i += 32, ++bit) {
    if (taken >> bit & 1) continue;
    if (const auto v = value(i); index < 0 || v > best) best = v, index = static_cast<std::int32_t>(i);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const auto other = __shfl_xor_sync(0xffffffffu, best, offset);
    const std::int32_t its = __shfl_xor_sync(0xffffffffu, index, offset);
    const bool better = index < 0 || other > best || (!(best > other) && its < index);
    if (its >= 0 && better) best = other, index = its;
  }
  return index;
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
    take(taken, best_of_warp(how.groups, taken, lane, [&](std::int64_t g) { return of_group[g]; }), lane);
  __syncwarp();
  for (std::int64_t g = lane, bit = 0; g < how.groups; g += 32, ++bit) of_group[g] = M(taken >> bit & 1);
  __syncwarp();
  std::uint64_t outside = 0;
  for (std::int64_t e = lane, bit = 0; e < how.X; e += 32, ++bit)
    if (of_group[e / size] == M(0)) outside |= std::uint64_t{1} << bit;
  return outside;
}

/// Shared memory of several groups of experts: [warps, groups].
template <class M>
__global__ void forward_kernel(How how, const M* __restrict__ bias, M* scores,
                               std::int32_t* __restrict__ experts, M* __restrict__ weights,
                               M* __restrict__ lse) {
  extern __shared__ double of_groups[];
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (n >= how.N) return;
  M* row = scores + n * how.X;
  M top = -INFINITY, sum = 0;
  for (std::int64_t e = lane; e < how.X; e += 32) top = row[e] > top ? row[e] : top;
  top = warp_max(top);
  for (std::int64_t e = lane; e < how.X; e += 32) {
    const M logit = row[e], exponential = exp(logit - top);
    sum += exponential;
    row[e] = how.sigmoid ? M(1) / (M(1) + exp(-logit)) : exponential;
  }
  sum = warp_sum(sum);
  if (!how.sigmoid)
    for (std::int64_t e = lane; e < how.X; e += 32) row[e] /= sum;
  if (lane == 0) lse[n] = top + log(sum);
  __syncwarp();  // scores of other lanes' experts are read from here on
  const auto value = [&](std::int64_t e) { return bias ? row[e] + bias[e] : row[e]; };
  std::uint64_t taken = 0;  // bit i: expert lane + 32 i
  if (how.groups > 1)
    taken = outside_best_groups(how, lane, value,
                                reinterpret_cast<M*>(of_groups) + threadIdx.x / 32 * how.groups);
  M of_chosen = 0;
  for (std::int64_t a = 0; a < how.A; ++a) {
    const std::int32_t expert = best_of_warp(how.X, taken, lane, value);
    take(taken, expert, lane);
    const M score = row[expert];
    of_chosen += score;
    if (lane == 0) {
      experts[n * how.A + a] = expert;
      weights[n * how.A + a] = score;
    }
  }
  const M factor = M(how.factor) / (how.renormalised ? of_chosen + M(spec::router::tiny) : M(1));
  if (lane == 0)
    for (std::int64_t a = 0; a < how.A; ++a) weights[n * how.A + a] *= factor;
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
    forward_kernel<M><<<blocks(N), warps * 32, shared, stream>>>(
        of(N, how), static_cast<const M*>(bias), static_cast<M*>(scores), experts, static_cast<M*>(weights),
        static_cast<M*>(lse));
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
