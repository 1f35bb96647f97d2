#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::router::cuda {

/// The most experts whose choice fits the kernels' marks.
constexpr std::int64_t most_experts = 2048;

/// Rows whose probabilities a block sums.
constexpr std::int64_t summed_rows = 512;
inline std::int64_t sums(std::int64_t N) { return (N + summed_rows - 1) / summed_rows; }

/// Device pointers of impl/ops/router/router.hpp: scores [N, X] hold the logits and, on return, the scores;
/// bias [X] or null, experts and weights [N, A], lse [N]. `wide`: fp64, else fp32.
ASSAY_KERNEL void launch_forward(bool wide, std::int64_t N, const spec::Experts& how, const void* bias,
                                 void* scores, std::int32_t* experts, void* weights, void* lse,
                                 cudaStream_t stream);
/// Adds to counts [G, X] how often each group of N / G rows chose each expert.
ASSAY_KERNEL void launch_counts(std::int64_t N, std::int64_t groups, const spec::Experts& how,
                                const std::int32_t* experts, std::int32_t* counts, cudaStream_t stream);
/// terms [3, N] fp64: each row's part of balance loss, router z-loss and entropy, not yet over the tokens.
/// `partial`, null or [sums(N), X] fp64: sums of probabilities; then no balance loss, and terms are [4, N].
ASSAY_KERNEL void launch_losses(bool wide, std::int64_t N, std::int64_t groups, const spec::Experts& how,
                                const void* scores, const std::int32_t* counts, const void* lse,
                                double* terms, double* partial, cudaStream_t stream);

struct BackwardArguments {
  Dtype dtype;  ///< of dlogits, whose arithmetic type the others have
  std::int64_t N, groups;
  const void *dweights, *scores, *weights, *lse;
  const void* logits;  ///< null where they were not kept
  const std::int32_t *experts, *counts;
  double balance, z;     ///< coefficients
  const double* shares;  ///< [X] of the choices; null: of each group, from its counts
  const double* tokens;  ///< of the whole optimizer step
  void* dlogits;         ///< [N, X]
};
ASSAY_KERNEL void launch_backward(const spec::Experts& how, const BackwardArguments& arguments,
                                  cudaStream_t stream);

}  // namespace assay::impl::router::cuda
