#include "impl/model/model.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "spec/model/trainable.hpp"
#include "spec/ops/rope.hpp"

namespace assay::impl {

Model::Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
             at::ScalarType compute, at::Device device, spec::Recompute recompute,
             const spec::LinearPrecision& linear)
    : model_(model),
      parameters_(parameters),
      rope_table_(
          rope::table(spec::rope::inverse_frequencies(model.head_dim, model.rope_theta, model.rope_scaling),
                      context, compute, device)),
      recompute_(recompute),
      linear_(linear),
      twins_(model.layers) {
  spec::require_trainable(model);
}

TensorOps::Context Model::context(const TokenBatch& batch) {
  return {.model = model_,
          .rope_table = rope_table_,
          .batch = batch,
          .parameters = &parameters_,
          .linear = &linear_,
          .twins = linear_.weights == spec::QuantiseWeights::step ? &twins_ : nullptr,
          .observer = observer_,
          .chunk_logits = chunk_logits_};
}

Loss Model::forward(const TokenBatch& batch, const Normalizer& normalizer, double z, Activations& saved) {
  TensorOps ops(context(batch), normalizer, z);
  spec::step::forward(ops, recompute_, saved);
  return ops.loss();
}

void Model::backward(const TokenBatch& batch, Activations saved) {
  TensorOps ops(context(batch));
  spec::step::backward(ops, std::move(saved));
}

at::Tensor Model::logits(const TokenBatch& batch) {
  TensorOps::Context unquantised = context(batch);
  unquantised.linear = nullptr;
  TensorOps ops(unquantised);
  return spec::step::logits(ops);
}

std::int64_t Model::visible_pairs(const TokenBatch& batch) {
  return TensorOps(context(batch)).mask().visible_pairs();
}

void Model::quantise_weights() {
  using spec::quantise::Recipe;
  if (linear_.weights != spec::QuantiseWeights::step) return;
  for (std::int64_t block = 1; block <= model_.layers; ++block) {
    const Recipe recipe = linear_.of(block, model_.layers);
    if (recipe == Recipe::none) continue;
    twins_.of(block, parameters_.acquire(block).decoder, recipe);
    parameters_.release(block);
  }
}

}  // namespace assay::impl
