// The paper ops of latent attention: spec/step/latent_attention.hpp over shapes.
#include <utility>

#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

using time::StepPass;

step::LatentSplit<PaperOps> PaperOps::latent_split(const Site& site, const Tensor& down) {
  begin_op(site);
  const latent_attention::Shape shape = latent_attention::shape_of(s_.model, B_, T_);
  match(site, down.columns(), shape.Ckv + shape.R);
  record(site, StepPass::forward, {}, latent_attention::split_bytes(shape, element_));
  Tensor key_value = value(site, {N_, shape.Ckv});
  return {std::move(key_value), make("shared_key", Purpose::activations, {N_, shape.R}, element_)};
}

Tensor PaperOps::latent_join(const Site& site, Tensor key_value, Tensor shared_key) {
  begin_op(site);
  match(site, key_value.rows(), shared_key.rows());
  record(site, StepPass::backward, {},
         latent_attention::split_bytes(latent_attention::shape_of(s_.model, B_, T_), element_));
  return temporary("d_key_value_and_shared_key", {N_, key_value.columns() + shared_key.columns()}, element_);
}

Tensor PaperOps::latent_expand(const Site& site, const Tensor& query, const Tensor& key_value,
                               const Tensor& shared_key) {
  begin_op(site);
  const latent_attention::Shape shape = latent_attention::shape_of(s_.model, B_, T_);
  match(site, query.columns(), shape.H * shape.E);
  match(site, key_value.columns(), shape.H * (shape.E - shape.R + shape.W));
  match(site, shared_key.columns(), shape.R);
  record(site, StepPass::forward, latent_attention::expand_forward_flops(shape),
         latent_attention::expand_forward_bytes(shape, element_, statistic_));
  return value(site, {N_, shape.H * (2 * shape.E + shape.W)});
}

step::LatentGradient<PaperOps> PaperOps::latent_expand_backward(const Site& site, Tensor d_qkv) {
  begin_op(site);
  const latent_attention::Shape shape = latent_attention::shape_of(s_.model, B_, T_);
  match(site, d_qkv.columns(), shape.H * (2 * shape.E + shape.W));
  record(site, StepPass::backward, latent_attention::expand_backward_flops(shape),
         latent_attention::expand_backward_bytes(shape, element_, statistic_));
  Tensor query = temporary("d_query", {N_, shape.H * shape.E}, element_),
         key_value = temporary("d_key_value", {N_, shape.H * (shape.E - shape.R + shape.W)}, element_);
  return {std::move(query), std::move(key_value), temporary("d_shared_key", {N_, shape.R}, element_)};
}

}  // namespace assay::spec::paper
