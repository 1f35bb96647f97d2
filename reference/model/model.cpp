#include "reference/model/model.hpp"

#include "reference/counted.hpp"
#include "reference/ops/embedding.hpp"
#include "reference/ops/linear.hpp"
#include "spec/model/trainable.hpp"

namespace assay::reference::model {

namespace {
const char* const embedding_name = "model.embed_tokens.weight";
const char* const final_norm_name = "model.norm.weight";

const char* head_name(const spec::ModelSpec& model) {
  return model.tied_embeddings ? embedding_name : "lm_head.weight";
}
}  // namespace

template <class S>
Forward<S> forward(const Parameters<S>& parameters, const spec::ModelSpec& model, const Batch& batch,
                   const Loss& loss, const Recipes& recipes, std::optional<double> capacity_factor) {
  spec::require_computed(model);
  Forward<S> out;
  Tensor<S> x =
      embedding::forward(parameters.at(embedding_name), batch.ids).reshaped({batch.B, batch.T, model.width});
  for (Index layer = 0; layer < model.layers; ++layer) {
    out.blocks.push_back(block::forward(x, parameters, layer, model, batch, recipes.linears(layer),
                                        capacity_factor, recipes.of_experts(layer)));
    x = out.blocks.back().y;
  }
  out.final_norm = rms_norm::forward(x, parameters.at(final_norm_name), model.norm_eps);
  out.logits = linear::forward(out.final_norm.y, parameters.at(head_name(model)));
  out.loss = cross_entropy::forward(out.logits, batch.targets, loss.normalizer, loss.z_loss);
  return out;
}

template <class S>
Parameters<S> backward(const Forward<S>& saved, const Parameters<S>& parameters, const spec::ModelSpec& model,
                       const Batch& batch, const Loss& loss, const Recipes& recipes,
                       const std::vector<experts::Upstream<S>>& auxiliary) {
  Parameters<S> gradients;
  const Tensor<S> dlogits =
      cross_entropy::backward(1.0, saved.logits, batch.targets, saved.loss.lse, loss.normalizer, loss.z_loss);

  const auto head = linear::backward(dlogits, saved.final_norm.y, parameters.at(head_name(model)));
  add_gradient(gradients, head_name(model), head.dweight);

  const auto norm = rms_norm::backward(head.dx, saved.blocks.back().y, parameters.at(final_norm_name),
                                       saved.final_norm.rstd);
  add_gradient(gradients, final_norm_name, norm.dgain);

  Tensor<S> dx = norm.dx;
  for (Index layer = model.layers - 1; layer >= 0; --layer)
    dx = block::backward(
        dx, saved.blocks[static_cast<std::size_t>(layer)], parameters, layer, model, batch, gradients,
        recipes.linears(layer),
        auxiliary.empty() ? experts::Upstream<S>{} : auxiliary.at(static_cast<std::size_t>(layer)),
        recipes.of_experts(layer));
  add_gradient(gradients, embedding_name, embedding::backward(dx, batch.ids, model.vocab));
  return gradients;
}

template Forward<double> forward(const Parameters<double>&, const spec::ModelSpec&, const Batch&, const Loss&,
                                 const Recipes&, std::optional<double>);
template Forward<Counted> forward(const Parameters<Counted>&, const spec::ModelSpec&, const Batch&,
                                  const Loss&, const Recipes&, std::optional<double>);
template Parameters<double> backward(const Forward<double>&, const Parameters<double>&,
                                     const spec::ModelSpec&, const Batch&, const Loss&, const Recipes&,
                                     const std::vector<experts::Upstream<double>>&);
template Parameters<Counted> backward(const Forward<Counted>&, const Parameters<Counted>&,
                                      const spec::ModelSpec&, const Batch&, const Loss&, const Recipes&,
                                      const std::vector<experts::Upstream<Counted>>&);

}  // namespace assay::reference::model
