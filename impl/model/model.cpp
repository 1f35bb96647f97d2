#include "impl/model/model.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "spec/model/trainable.hpp"
#include "spec/ops/rope.hpp"

namespace assay::impl {

Model::Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
             at::ScalarType compute, at::Device device, spec::Recompute recompute)
    : model_(model),
      parameters_(parameters),
      rope_table_(
          rope::table(spec::rope::inverse_frequencies(model.head_dim, model.rope_theta, model.rope_scaling),
                      context, compute, device)),
      recompute_(recompute) {
  spec::require_trainable(model);
}

TensorOps::Context Model::context(const TokenBatch& batch) const {
  return {.model = model_,
          .rope_table = rope_table_,
          .batch = batch,
          .parameters = &parameters_,
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
  TensorOps ops(context(batch));
  return spec::step::logits(ops);
}

std::int64_t Model::visible_pairs(const TokenBatch& batch) const {
  return TensorOps(context(batch)).mask().visible_pairs();
}

}  // namespace assay::impl
