#pragma once
// The whole model: embedding, L decoder blocks, final norm, head and loss; forward and backward of one
// micro-batch.
#include "impl/model/activations.hpp"
#include "impl/model/parameter_access.hpp"
#include "impl/model/token_batch.hpp"
#include "impl/ops/normalizer.hpp"
#include "impl/ops/rope.hpp"
#include "spec/memory/recompute.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl {

/// A micro-batch's share of the step's loss, fp64 scalars on the model's device [nat].
struct Loss {
  at::Tensor cross_entropy;
  at::Tensor z_loss;
};

class Model {
 public:
  /// `context` bounds positions [tokens]. Parameters stay with `parameters`, which must outlive the model.
  /// `recompute`: what forward does not keep for backward; losses and gradients are the same for each.
  Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
        at::ScalarType compute, at::Device device, spec::Recompute recompute = spec::Recompute::norms_swiglu);

  /// Runs one micro-batch; the loss's gradient is taken at once, as far as the head (impl/model/lm_head.hpp),
  /// whose own is added to `parameters`. `normalizer`: valid tokens of the whole step over all micro-batches
  /// and ranks; `z`: z-loss coefficient. Errors: SpecError of the ops.
  Loss forward(const TokenBatch& batch, const Normalizer& normalizer, double z, Activations& saved);

  /// Adds the gradients of one micro-batch's loss to those of `parameters` and consumes `saved`.
  void backward(const TokenBatch& batch, Activations saved);

  /// Logits [N, V] of a batch, nothing kept.
  at::Tensor logits(const TokenBatch& batch);

 private:
  /// Residual stream after the last block; `saved` may be null when no backward follows.
  at::Tensor hidden(const TokenBatch& batch, Activations* saved);

  const spec::ModelSpec model_;
  ParameterAccess& parameters_;
  rope::Table rope_table_;
  const spec::Recompute recompute_;
};

}  // namespace assay::impl
