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

/// What a run asks of routers beside their model: auxiliary losses whose gradients reach them, by their
/// coefficients, 0 for none, and the number of tokens of the whole optimizer step, over all micro-batches and
/// ranks; and a capacity.                        [spec/ops/load_balancing/load_balancing.md,
/// spec/ops/permute/permute.md]
struct Auxiliary {
  double balance = 0, z = 0;
  Normalizer tokens = 1;
  /// [X] fp64, of a model [sparse layers, X]: each expert's share of the choices of the batch so far;
  /// undefined: of each group of tokens, from its own counts.
  at::Tensor shares = {};
  double capacity = 0;  ///< factor; 0: no choice is dropped. Not read by the router's own ops
};

/// Scores of sigmoids do not say what the logits were, which the gradient of the z-loss reads.
inline bool keeps_logits(const spec::Experts& how, double z) {
  return z > 0 && how.scoring == spec::Scoring::sigmoid;
}

/// logits [N, X] fp32 or fp64, which become the scores. `groups` of tokens, whose choices are counted apart.
/// `bias` [X] of the type of the logits, which steers the choice of a model with a router bias; undefined
/// without one. [spec/ops/router/router.md] Errors: c10::Error for logits or a bias of another shape or type,
/// a bias that the model lacks or has, and groups that do not divide N. What spec::router::check refuses was
/// refused before a model was made.
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups = 1, bool keep_logits = false,
               const at::Tensor& bias = {});

/// What a micro-batch's tokens add to the step's, [4 + X] fp64: balance loss, router z-loss, both without
/// their coefficients, mean entropy of the probabilities [nat], choices that have no row, and how often each
/// expert was chosen. `ends` [X] of the rows (permute::Order), where a capacity drops some.
/// `probabilities`: the balance loss is 0, of shares that are not known yet, and behind these numbers stands
/// the sum of each expert's probabilities over the tokens of the step, [4 + 2 X] in all.
at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens,
                  const at::Tensor& ends = {}, bool probabilities = false);

/// The gradient of the logits, rounded once to `type`. dweights [N, A], type of scores.
at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type, const Auxiliary& auxiliary = {});

namespace cpu {
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups, const at::Tensor& bias);
decltype(router::losses) losses;
decltype(router::backward) backward;
}  // namespace cpu
namespace cuda {
Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups, const at::Tensor& bias);
decltype(router::losses) losses;
decltype(router::backward) backward;
}  // namespace cuda

}  // namespace assay::impl::router
