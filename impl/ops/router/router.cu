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
                               M* __restrict__ weights) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (n >= how.N) return;
  M* row = scores + n * how.X;
  if (how.sigmoid) {
    for (std::int64_t e = lane; e < how.X; e += 32) row[e] = M(1) / (M(1) + exp(-row[e]));
  } else {
    M top = -INFINITY, sum = 0;
    for (std::int64_t e = lane; e < how.X; e += 32) top = row[e] > top ? row[e] : top;
    top = warp_max(top);
    for (std::int64_t e = lane; e < how.X; e += 32) sum += row[e] = exp(row[e] - top);
    sum = warp_sum(sum);
    for (std::int64_t e = lane; e < how.X; e += 32) row[e] /= sum;
  }
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

template <class T>
__global__ void backward_kernel(How how, const Math<T>* __restrict__ dweights,
                                const Math<T>* __restrict__ scores, const std::int32_t* __restrict__ experts,
                                const Math<T>* __restrict__ weights, T* __restrict__ dlogits) {
  using M = Math<T>;
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (n >= how.N) return;
  const M *row = scores + n * how.X, *w = weights + n * how.A, *dw = dweights + n * how.A;
  const std::int32_t* chosen = experts + n * how.A;
  M sum = 0, along = 0;
  for (std::int64_t a = 0; a < how.A; ++a) sum += row[chosen[a]], along += dw[a] * w[a];
  sum += M(spec::router::tiny);
  const M factor = M(how.factor);
  const auto of_score = [&](std::int64_t a) {
    return how.renormalised ? (factor * dw[a] - along) / sum : factor * dw[a];
  };
  M inner = 0;  // of softmax
  for (std::int64_t a = 0; a < how.A; ++a) inner += of_score(a) * row[chosen[a]];
  for (std::int64_t e = lane; e < how.X; e += 32) {
    const M p = row[e];
    M d = 0;
    for (std::int64_t a = 0; a < how.A; ++a)
      if (chosen[a] == e) d = of_score(a);
    dlogits[n * how.X + e] = narrow<T>(how.sigmoid ? d * p * (M(1) - p) : p * (d - inner));
  }
}

unsigned blocks(std::int64_t N) { return static_cast<unsigned>((N + warps - 1) / warps); }

}  // namespace

void launch_forward(bool wide, std::int64_t N, const spec::Experts& how, void* scores, std::int32_t* experts,
                    void* weights, cudaStream_t stream) {
  if (N == 0) return;
  if (wide)
    forward_kernel<double><<<blocks(N), warps * 32, 0, stream>>>(of(N, how), static_cast<double*>(scores),
                                                                 experts, static_cast<double*>(weights));
  else
    forward_kernel<float><<<blocks(N), warps * 32, 0, stream>>>(of(N, how), static_cast<float*>(scores),
                                                                experts, static_cast<float*>(weights));
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(Dtype dtype, std::int64_t N, const spec::Experts& how, const void* dweights,
                     const void* scores, const std::int32_t* experts, const void* weights, void* dlogits,
                     cudaStream_t stream) {
  if (N == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    backward_kernel<T><<<blocks(N), warps * 32, 0, stream>>>(
        of(N, how), static_cast<const M*>(dweights), static_cast<const M*>(scores), experts,
        static_cast<const M*>(weights), static_cast<T*>(dlogits));
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::router::cuda
