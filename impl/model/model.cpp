#include "impl/model/model.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "impl/model/decoder_block.hpp"
#include "impl/model/lm_head.hpp"
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
             at::ScalarType compute, at::Device device, spec::Recompute recompute)
    : model_(model),
      parameters_(parameters),
      rope_table_(
          rope::table(spec::rope::inverse_frequencies(model.head_dim, model.rope_theta, model.rope_scaling),
                      context, compute, device)),
      recompute_(recompute) {
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
    x = decoder_block::forward(x, weights, model_, rope_table_, batch,
                               saved ? recompute_ : spec::Recompute::block, kept);
    parameters_.release(block);
  }
  return x;
}

Loss Model::forward(const TokenBatch& batch, const Normalizer& normalizer, double z, Activations& saved) {
  saved.x_final = hidden(batch, &saved);
  const BlockViews& weights = parameters_.acquire(model_.layers + 1);
  const auto norm = rms_norm::forward(saved.x_final, weights.norm, model_.norm_eps);
  saved.rstd_final = norm.rstd;
  const BlockGradients gradients = parameters_.gradients(model_.layers + 1);
  const auto head = lm_head::forward_backward(norm.y, weights.head, batch.targets, normalizer, z,
                                              gradients.views.head, gradients.products);
  parameters_.release(model_.layers + 1);
  saved.d_normed_final = head.dx;
  return {head.cross_entropy, head.z_loss};
}

void Model::backward(const TokenBatch& batch, Activations saved) {
  const std::int64_t head_block = model_.layers + 1;
  at::Tensor dx = at::zeros_like(saved.x_final);
  rms_norm::backward(std::exchange(saved.d_normed_final, {}), std::exchange(saved.x_final, {}),
                     parameters_.acquire(head_block).norm, saved.rstd_final, dx,
                     parameters_.gradients(head_block).views.norm, ForwardValue::kept);
  parameters_.release(head_block);
  parameters_.gradients_ready(head_block);
  for (std::int64_t block = model_.layers; block >= 1; --block) {
    const DecoderViews& weights = parameters_.acquire(block).decoder;
    decoder_block::backward(dx, weights, parameters_.gradients(block).decoder(), model_, rope_table_, batch,
                            std::move(saved.blocks[static_cast<std::size_t>(block - 1)]));
    parameters_.release(block);
    parameters_.gradients_ready(block);
  }
  embedding::backward(dx, batch.inputs, parameters_.gradients(embedding_block).views.embedding);
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
