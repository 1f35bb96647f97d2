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
  std::int64_t N, X, A;
  bool sigmoid, renormalised;
  double factor;
};

How of(std::int64_t N, const spec::Experts& how) {
  return {N, how.count, how.active, how.scoring == Scoring::sigmoid, how.renormalised, how.scaling_factor};
}

template <class M>
__device__ M warp_max(M value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const M other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = other > value ? other : value;
  }
  return value;
}

template <class M>
__global__ void forward_kernel(How how, M* __restrict__ scores, std::int32_t* __restrict__ experts,
                               M* __restrict__ weights, M* __restrict__ lse) {
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
  std::uint64_t taken = 0;  // bit i: expert lane + 32 i
  M of_chosen = 0;
  for (std::int64_t a = 0; a < how.A; ++a) {
    M best = 0;
    std::int32_t expert = -1;
    for (std::int64_t e = lane, i = 0; e < how.X; e += 32, ++i) {
      if (taken >> i & 1) continue;
      if (expert < 0 || row[e] > best) best = row[e], expert = static_cast<std::int32_t>(e);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      const M other = __shfl_xor_sync(0xffffffffu, best, offset);
      const std::int32_t its = __shfl_xor_sync(0xffffffffu, expert, offset);
      const bool better = expert < 0 || other > best || (!(best > other) && its < expert);
      if (its >= 0 && better) best = other, expert = its;
    }
    if (expert % 32 == lane) taken |= std::uint64_t{1} << (expert / 32);
    of_chosen += best;
    if (lane == 0) {
      experts[n * how.A + a] = expert;
      weights[n * how.A + a] = best;
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
                              const std::int32_t* __restrict__ counts, const M* __restrict__ lse,
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
  const double Z = *given.tokens;
  const M of_count = M(given.balance * static_cast<double>(how.X) / (Z * static_cast<double>(how.A * rows))),
          of_lse = M(2 * given.z / Z), lse = static_cast<const M*>(given.lse)[n];
  M sum = 0, along = 0;
  for (std::int64_t a = 0; a < how.A; ++a) sum += row[chosen[a]], along += dw[a] * w[a];
  sum += M(spec::router::tiny);
  const M factor = M(how.factor);
  const auto of_weight = [&](std::int64_t a) {
    return how.renormalised ? (factor * dw[a] - along) / sum : factor * dw[a];
  };
  M all = 1, balanced = 0;
  if (of_count != M(0)) {
    all = sum_of_scores(how, row, lane);
    for (std::int64_t e = lane; e < how.X; e += 32) balanced += of_count * M(count[e]) * (row[e] / all);
    balanced = warp_sum(balanced);
  }
  M inner = balanced;  // of softmax
  for (std::int64_t a = 0; a < how.A; ++a) inner += of_weight(a) * row[chosen[a]];
  for (std::int64_t e = lane; e < how.X; e += 32) {
    const M p = row[e];
    M d = of_count * M(count[e]);
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

void launch_forward(bool wide, std::int64_t N, const spec::Experts& how, void* scores, std::int32_t* experts,
                    void* weights, void* lse, cudaStream_t stream) {
  if (N == 0) return;
  const auto launch = [&](auto element) {
    using M = decltype(element);
    forward_kernel<M><<<blocks(N), warps * 32, 0, stream>>>(of(N, how), static_cast<M*>(scores), experts,
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
                   cudaStream_t stream) {
  if (N == 0) return;
  const auto launch = [&](auto element) {
    using M = decltype(element);
    losses_kernel<M><<<blocks(N), warps * 32, 0, stream>>>(
        of(N, how), N / groups, static_cast<const M*>(scores), counts, static_cast<const M*>(lse), terms);
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
