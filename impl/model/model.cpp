#include "impl/model/model.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "impl/model/decoder_block.hpp"
#include "impl/ops/cross_entropy.hpp"
#include "impl/ops/embedding.hpp"
#include "impl/ops/linear.hpp"
#include "impl/ops/rms_norm.hpp"
#include "spec/model/trainable.hpp"
#include "spec/ops/rope.hpp"

namespace assay::impl {

namespace {
constexpr std::int64_t embedding_block = 0;
}

Model::Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
             at::ScalarType compute, at::Device device)
    : model_(model),
      parameters_(parameters),
      rope_table_(
          rope::table(spec::rope::inverse_frequencies(model.head_dim, model.rope_theta, model.rope_scaling),
                      context, compute, device)) {
  spec::require_trainable(model);
}

at::Tensor Model::hidden(const TokenBatch& batch, Activations* saved) {
  at::Tensor x = embedding::forward(parameters_.acquire(embedding_block).embedding, batch.inputs);
  parameters_.release(embedding_block);
  if (saved) saved->blocks.resize(static_cast<std::size_t>(model_.layers));
  for (std::int64_t block = 1; block <= model_.layers; ++block) {
    const DecoderViews& weights = parameters_.acquire(block).decoder;
    BlockActivations discarded;
    BlockActivations& kept = saved ? saved->blocks[static_cast<std::size_t>(block - 1)] : discarded;
    x = decoder_block::forward(x, weights, model_, rope_table_, batch, kept);
    parameters_.release(block);
  }
  return x;
}

Loss Model::forward(const TokenBatch& batch, double normalizer, double z, Activations& saved) {
  saved.x_final = hidden(batch, &saved);
  const BlockViews& weights = parameters_.acquire(model_.layers + 1);
  auto norm = rms_norm::forward(saved.x_final, weights.norm, model_.norm_eps);
  saved.normed_final = norm.y;
  saved.rstd_final = norm.rstd;
  saved.logits = linear::forward(norm.y, weights.head);
  parameters_.release(model_.layers + 1);
  auto loss = cross_entropy::forward(saved.logits, batch.targets, normalizer, z);
  saved.lse = loss.lse;
  return {loss.loss, loss.z_loss};
}

void Model::backward(const TokenBatch& batch, double normalizer, double z, Activations saved) {
  const std::int64_t head_block = model_.layers + 1;
  at::Tensor dx = at::zeros_like(saved.x_final);
  {
    const BlockViews& weights = parameters_.acquire(head_block);
    const BlockViews& gradients = parameters_.gradients(head_block);
    const at::Tensor d_logits =
        cross_entropy::backward(std::exchange(saved.logits, {}), batch.targets, saved.lse, normalizer, z);
    linear::backward_weight(d_logits, std::exchange(saved.normed_final, {}), gradients.head);
    const at::Tensor d_normed = linear::backward_input(d_logits, weights.head);
    rms_norm::backward(d_normed, std::exchange(saved.x_final, {}), weights.norm, saved.rstd_final, dx,
                       gradients.norm);
    parameters_.release(head_block);
    parameters_.gradients_ready(head_block);
  }
  for (std::int64_t block = model_.layers; block >= 1; --block) {
    const DecoderViews& weights = parameters_.acquire(block).decoder;
    decoder_block::backward(dx, weights, parameters_.gradients(block).decoder, model_, rope_table_, batch,
                            std::move(saved.blocks[static_cast<std::size_t>(block - 1)]));
    parameters_.release(block);
    parameters_.gradients_ready(block);
  }
  embedding::backward(dx, batch.inputs, parameters_.gradients(embedding_block).embedding);
  parameters_.gradients_ready(embedding_block);
}

at::Tensor Model::logits(const TokenBatch& batch) {
  const at::Tensor x = hidden(batch, nullptr);
  const BlockViews& weights = parameters_.acquire(model_.layers + 1);
  at::Tensor logits = linear::forward(rms_norm::forward(x, weights.norm, model_.norm_eps).y, weights.head);
  parameters_.release(model_.layers + 1);
  return logits;
}

}  // namespace assay::impl
