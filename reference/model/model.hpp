#pragma once
#include <vector>

#include "reference/model/batch.hpp"
#include "reference/model/block.hpp"
#include "reference/model/parameters.hpp"
#include "reference/model/recipes.hpp"
#include "reference/ops/cross_entropy.hpp"
#include "reference/tensor.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::reference::model {

/// How the loss is formed. The normalizer is that of the whole optimizer step, so that the losses and
/// gradients of its micro-batches add up to the step's.
struct Loss {
  double normalizer = 1;  ///< valid tokens of the optimizer step over all micro-batches and ranks
  double z_loss = 0;      ///< coefficient
};

/// Every value of the model that its backward pass reads, in the order they are computed.
template <class S>
struct Forward {
  std::vector<block::Forward<S>> blocks;  ///< L of them
  rms_norm::Forward<S> final_norm;        ///< of the last block's y
  Tensor<S> logits;                       ///< [B, T, V]
  cross_entropy::Forward<S> loss;
};

/// A decoder-only language model on one batch, with its loss.                    [spec/model/model.md]
/// Equation:  x_0 = embedding[ids], x_{l+1} = block_l(x_l), logits = head(rms_norm(x_L)); the head is the
///            embedding itself when the model ties them. The linears of blocks are computed as `recipes` say.
/// Errors:    SpecError of the ops: an id or target outside the vocabulary, shapes that do not fit, a
///            normalizer or coefficient of `loss` out of range
template <class S>
Forward<S> forward(const Parameters<S>& parameters, const spec::ModelSpec& model, const Batch& batch,
                   const Loss& loss, const Recipes& recipes = {},
                   std::optional<double> capacity_factor = std::nullopt);

/// Gradient of `forward`'s loss (cross-entropy and z-loss) with respect to every parameter. A tied embedding
/// holds the sum of its two uses. `auxiliary`: what further losses send into the router of each layer (L of
/// them, or none; reference/model/balancing.hpp).
template <class S>
Parameters<S> backward(const Forward<S>& saved, const Parameters<S>& parameters, const spec::ModelSpec& model,
                       const Batch& batch, const Loss& loss, const Recipes& recipes = {},
                       const std::vector<experts::Upstream<S>>& auxiliary = {});

}  // namespace assay::reference::model
