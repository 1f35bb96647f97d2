#pragma once
// Queries, keys and values by latent attention, written once: narrow projections of the block's normed rows,
// their norms, and the projections up to all heads (spec/ops/latent_attention/latent_attention.md). With one
// tensor rank.
#include "spec/step/activations.hpp"
#include "spec/step/deferred.hpp"
#include "spec/step/op_set.hpp"

namespace assay::spec::step {

/// The projections down: all that the up-projections are made of.
template <OpSet Ops>
void latent_down(Ops& ops, const typename Ops::Operand& normed, const DecoderWeights<Ops>& weights,
                 BlockActivations<Ops>& saved) {
  if (weights.query_down.defined())
    saved.query_down = ops.linear(site::query_down, normed, weights.query_down);
  const typename Ops::Tensor down = ops.linear(site::key_value_down, normed, weights.key_value_down);
  LatentSplit<Ops> parts = ops.latent_split(site::latent_split, down);
  saved.key_value_down = std::move(parts.key_value);
  saved.shared_key = std::move(parts.shared_key);
}

/// Queries of all heads: from their compressed form, or straight from the block's normed rows.
template <OpSet Ops>
typename Ops::Tensor latent_queries(Ops& ops, typename Ops::Operand normed,
                                    const DecoderWeights<Ops>& weights, bool keep,
                                    BlockActivations<Ops>& saved) {
  if (!weights.query_down.defined()) return ops.linear(site::query, normed, weights.query_up);
  normed = {};
  const Normed<Ops> norm =
      ops.rms_norm(site::query_norm, saved.query_down, weights.query_norm, weights.query_up, readers(keep));
  saved.query_rstd = norm.rstd;
  if (keep) saved.query_normed = ops.kept(norm.y);
  return ops.linear(site::query_up, norm.y, weights.query_up);
}

/// q | k | v of every head, turned, as attention reads them.
template <OpSet Ops>
typename Ops::Tensor latent_up(Ops& ops, typename Ops::Operand normed, const DecoderWeights<Ops>& weights,
                               bool keep, BlockActivations<Ops>& saved) {
  const typename Ops::Tensor query = latent_queries(ops, std::move(normed), weights, keep, saved);
  Normed<Ops> norm = ops.rms_norm(site::key_value_norm, saved.key_value_down, weights.key_value_norm,
                                  weights.key_value_up, readers(keep));
  saved.key_value_rstd = norm.rstd;
  if (keep) saved.key_value_normed = ops.kept(norm.y);
  const typename Ops::Tensor key_value = ops.linear(site::key_value_up, norm.y, weights.key_value_up);
  norm.y = {};
  return ops.latent_expand(site::latent_expand, query, key_value, saved.shared_key);
}

template <OpSet Ops>
typename Ops::Tensor latent_forward(Ops& ops, typename Ops::Operand normed,
                                    const DecoderWeights<Ops>& weights, bool keep,
                                    BlockActivations<Ops>& saved) {
  latent_down(ops, normed, weights, saved);
  if (keep) saved.normed = ops.kept(normed);
  return latent_up(ops, std::move(normed), weights, keep, saved);
}

/// q | k | v once more, from what the projections down left.
template <OpSet Ops>
typename Ops::Tensor latent_up_again(Ops& ops, const DecoderWeights<Ops>& weights,
                                     BlockActivations<Ops>& saved) {
  const auto again = ops.recompute();
  typename Ops::Operand normed;
  if (!weights.query_down.defined())
    normed =
        ops.rms_norm(site::norm_attention, saved.x, weights.norm_attention, weights.query_up, readers(false))
            .y;
  return latent_up(ops, std::move(normed), weights, /*keep=*/false, saved);
}

/// The gradient of the compressed keys and values with the shared key beside them, as GEMMs with the
/// projection down read it.
template <OpSet Ops>
typename Ops::Operand latent_keys_backward(Ops& ops, typename Ops::Tensor d_key_value,
                                           typename Ops::Tensor d_shared_key,
                                           const DecoderWeights<Ops>& weights,
                                           const DecoderGradients<Ops>& gradients,
                                           BlockActivations<Ops>& saved) {
  typename Ops::Operand upstream =
      ops.gradient_operand(site::key_value_up, d_key_value, weights.key_value_up);
  d_key_value = typename Ops::Tensor{};
  typename Ops::Tensor d_normed =
      ops.linear_input_gradient(site::key_value_up, upstream, weights.key_value_up);
  typename Ops::Tensor zeros = ops.zeros_like(site::key_value_norm, saved.key_value_down);
  NormGradient<Ops> norm = ops.rms_norm_backward(
      site::key_value_norm, std::move(d_normed), saved.key_value_down, weights.key_value_norm,
      saved.key_value_rstd, std::move(zeros), gradients.key_value_norm, weights.key_value_up,
      std::exchange(saved.key_value_normed, {}), ForwardValue::read);
  saved.key_value_down = typename Ops::Tensor{};
  defer_weight_gradient(ops, site::key_value_up, std::move(upstream), std::move(norm.value),
                        gradients.key_value_up);
  const typename Ops::Tensor d_down =
      ops.latent_join(site::latent_split, std::move(norm.dx), std::move(d_shared_key));
  return ops.gradient_operand(site::key_value_down, d_down, weights.key_value_down);
}

/// The gradient of the compressed queries, as GEMMs with the projection down read it; of queries that are
/// not compressed their own.
template <OpSet Ops>
typename Ops::Operand latent_queries_backward(Ops& ops, typename Ops::Tensor d_query,
                                              const DecoderWeights<Ops>& weights,
                                              const DecoderGradients<Ops>& gradients,
                                              BlockActivations<Ops>& saved) {
  if (!weights.query_down.defined()) return ops.gradient_operand(site::query, d_query, weights.query_up);
  typename Ops::Operand upstream = ops.gradient_operand(site::query_up, d_query, weights.query_up);
  d_query = typename Ops::Tensor{};
  typename Ops::Tensor d_normed = ops.linear_input_gradient(site::query_up, upstream, weights.query_up);
  typename Ops::Tensor zeros = ops.zeros_like(site::query_norm, saved.query_down);
  NormGradient<Ops> norm =
      ops.rms_norm_backward(site::query_norm, std::move(d_normed), saved.query_down, weights.query_norm,
                            saved.query_rstd, std::move(zeros), gradients.query_norm, weights.query_up,
                            std::exchange(saved.query_normed, {}), ForwardValue::read);
  saved.query_down = typename Ops::Tensor{};
  defer_weight_gradient(ops, site::query_up, std::move(upstream), std::move(norm.value), gradients.query_up);
  return ops.gradient_operand(site::query_down, norm.dx, weights.query_down);
}

/// From the gradient of q | k | v to that of x, plus dx; consumes what the branch kept.
template <OpSet Ops>
typename Ops::Tensor latent_backward(Ops& ops, typename Ops::Tensor dx, typename Ops::Tensor d_qkv,
                                     const DecoderWeights<Ops>& weights,
                                     const DecoderGradients<Ops>& gradients, BlockActivations<Ops>& saved) {
  LatentGradient<Ops> d = ops.latent_expand_backward(site::latent_expand, std::move(d_qkv));
  saved.shared_key = typename Ops::Tensor{};
  typename Ops::Operand d_key_value =
      latent_keys_backward(ops, std::move(d.key_value), std::move(d.shared_key), weights, gradients, saved);
  typename Ops::Operand d_query = latent_queries_backward(ops, std::move(d.query), weights, gradients, saved);
  const bool compressed = weights.query_down.defined();
  const Site& of_query = compressed ? site::query_down : site::query;
  const auto& weight = compressed ? weights.query_down : weights.query_up;
  const auto& gradient = compressed ? gradients.query_down : gradients.query_up;
  typename Ops::Tensor by_query = ops.linear_input_gradient(of_query, d_query, weight);
  typename Ops::Tensor d_normed =
      ops.linear_input_gradient(site::key_value_down, d_key_value, weights.key_value_down);
  ops.add(site::key_value_down, d_normed, by_query);
  by_query = typename Ops::Tensor{};
  NormGradient<Ops> norm = ops.rms_norm_backward(
      site::norm_attention, std::move(d_normed), saved.x, weights.norm_attention, saved.rstd, std::move(dx),
      gradients.norm_attention, weights.key_value_down, std::exchange(saved.normed, {}), ForwardValue::read);
  defer_weight_gradient(ops, of_query, std::move(d_query), norm.value, gradient);
  defer_weight_gradient(ops, site::key_value_down, std::move(d_key_value), std::move(norm.value),
                        gradients.key_value_down);
  return std::move(norm.dx);
}

}  // namespace assay::spec::step
