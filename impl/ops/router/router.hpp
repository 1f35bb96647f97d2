#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/normalizer.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::router {

/// Which experts a token visits, and how much each counts. N tokens in G groups of consecutive ones, X
/// experts, A of them a token.
struct Choice {
  at::Tensor scores;   ///< [N, X] softmax or sigmoid of the logits, fp32 or fp64
  at::Tensor experts;  ///< [N, A] int32, best first; of equal scores the lower expert
  at::Tensor weights;  ///< [N, A] type of scores
  at::Tensor counts;   ///< [G, X] int32: how often the tokens of a group chose an expert
  at::Tensor lse;      ///< [N] of the logits, type of scores
  at::Tensor logits;   ///< [N, X] where they are kept, else undefined
};

/// Auxiliary losses whose gradients reach the router: their coefficients, 0 for none, and the number of
/// tokens of the whole optimizer step, over all micro-batches and ranks.         [spec/ops/load_balancing.md]
struct Auxiliary {
  double balance = 0, z = 0;
  Normalizer tokens = 1;
};

/// Scores of sigmoids do not say what the logits were, which the gradient of the z-loss reads.
inline bool keeps_logits(const spec::Experts& how, double z) {
  return z > 0 && how.scoring == spec::Scoring::sigmoid;
}

/// logits [N, X] fp32 or fp64, which become the scores.                              [spec/ops/router.md]
/// Errors: SpecError router_c1.. as spec::router::check.
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups = 1,
               bool keep_logits = false);

/// What a micro-batch's tokens add to the step's, [3 + X] fp64: balance loss, router z-loss, both without
/// their coefficients, mean entropy of the probabilities [nat], and how often each expert was chosen.
at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens);

/// The gradient of the logits, rounded once to `type`. dweights [N, A], type of scores.
at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type, const Auxiliary& auxiliary = {});

namespace cpu {
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups);
decltype(router::losses) losses;
decltype(router::backward) backward;
}  // namespace cpu
namespace cuda {
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups);
decltype(router::losses) losses;
decltype(router::backward) backward;
}  // namespace cuda

}  // namespace assay::impl::router
