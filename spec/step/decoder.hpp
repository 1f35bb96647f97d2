#pragma once
// One pre-norm decoder block, written once: x + attention(norm(x)), then + mlp(norm(.)); forward, backward
// and what backward computes again. Every tensor lives exactly as long as it is held here: on paper that is
// the memory plan, in the trainer the allocator's work.
#include "spec/step/experts.hpp"
#include "spec/step/latent_attention.hpp"

namespace assay::spec::step {

/// The rows of all tensor ranks: x [N/t, C] -> [N, C]. With one rank x itself.
template <OpSet Ops, class Rows>
Rows all_rows(Ops& ops, const Site& site, Rows x) {
  auto gathering = ops.begin_all_gather(site, std::move(x));
  return ops.wait(std::move(gathering));
}

/// The sum over tensor ranks of their parts, of which each keeps its own rows: [N, C] -> [N/t, C]. With one
/// rank `part` itself.
template <OpSet Ops>
typename Ops::Tensor own_rows(Ops& ops, const Site& site, typename Ops::Tensor part) {
  auto scattering = ops.begin_reduce_scatter(site, std::move(part));
  return ops.wait(std::move(scattering));
}

/// residual [N/t, out] plus this rank's rows of x W^T, whose summed axis is split over the tensor ranks:
/// each has x [N, in/t] and W [out, in/t]. With one rank the GEMM adds the residual in its write-back;
/// with several it is added once, behind the sum over ranks, by the next norm in its own pass.
template <OpSet Ops>
ResidualStream<Ops> row_parallel(Ops& ops, const Site& site, const typename Ops::Tensor& residual,
                                 const typename Ops::Operand& x, const typename Ops::Weight& weight) {
  if (ops.tensor_ranks() == 1) return {ops.linear_residual(site, residual, x, weight), {}};
  return {own_rows(ops, site, ops.linear(site, x, weight)), residual};
}

/// q | k | v of every head, turned, from the block's normed rows by one projection.
template <OpSet Ops>
typename Ops::Tensor grouped_forward(Ops& ops, typename Ops::Operand normed,
                                     const DecoderWeights<Ops>& weights, bool keep,
                                     BlockActivations<Ops>& saved) {
  const bool qk_norm = ops.model().qk_norm;
  typename Ops::Operand rows = all_rows(ops, site::qkv, normed);
  typename Ops::Tensor qkv =
      ops.linear(qk_norm ? site::qkv_raw : site::qkv, rows, weights.qkv, weights.qkv_bias);
  rows = {};
  if (keep) saved.normed = ops.kept(normed);
  normed = {};
  if (qk_norm) {
    QkNormed<Ops> turned = ops.qk_norm_rope(site::qk_norm_rope, qkv, weights.q_norm, weights.k_norm);
    saved.qkv_raw = std::exchange(qkv, std::move(turned.qkv));
    saved.qk_rstd = std::move(turned.rstd);
  } else {
    ops.rope(site::rope, qkv);
  }
  return qkv;
}

template <OpSet Ops>
ResidualStream<Ops> attention_forward(Ops& ops, ResidualStream<Ops>& x, const DecoderWeights<Ops>& weights,
                                      Recompute recompute, BlockActivations<Ops>& saved) {
  const bool latent = weights.key_value_down.defined(), keep = recompute == Recompute::none,
             keep_attention = recompute < Recompute::attention;
  Normed<Ops> norm = rms_norm(ops, site::norm_attention, x, weights.norm_attention,
                              latent ? weights.key_value_down : weights.qkv, readers(keep));
  saved.x = x.x;
  saved.rstd = norm.rstd;
  typename Ops::Tensor qkv = latent ? latent_forward(ops, std::move(norm.y), weights, keep, saved)
                                    : grouped_forward(ops, std::move(norm.y), weights, keep, saved);
  saved.attention = ops.attention(site::attention, ops.heads(qkv));
  if (!latent || recompute < Recompute::mla_up) saved.qkv = qkv;
  qkv = typename Ops::Tensor{};
  const typename Ops::Operand attended =
      ops.attention_operand(site::attention_output, saved.attention, weights.output, readers(keep_attention));
  if (keep_attention) saved.attended = ops.kept(attended);
  return row_parallel(ops, site::attention_output, x.x, attended, weights.output);
}

template <OpSet Ops>
void gate_up_forward(Ops& ops, ResidualStream<Ops>& x, const DecoderWeights<Ops>& weights,
                     Recompute recompute, BlockActivations<Ops>& saved) {
  const bool keep = recompute == Recompute::none;
  const Normed<Ops> norm = rms_norm(ops, site::norm_mlp, x, weights.norm_mlp, weights.gate_up, readers(keep));
  saved.x_mid = x.x;
  saved.rstd_mid = norm.rstd;
  if (keep) saved.normed_mid = ops.kept(norm.y);
  const typename Ops::Operand rows = all_rows(ops, site::gate_up, norm.y);
  saved.gate_up = ops.linear(site::gate_up, rows, weights.gate_up);
}

template <OpSet Ops>
ResidualStream<Ops> down_forward(Ops& ops, const typename Ops::Tensor& x, const DecoderWeights<Ops>& weights,
                                 Recompute recompute, BlockActivations<Ops>& saved) {
  const bool keep = recompute == Recompute::none;
  const typename Ops::Operand gated = ops.gate(site::gate, saved.gate_up, weights.down, readers(keep));
  if (keep) saved.gated = ops.kept(gated);
  return row_parallel(ops, site::down, x, gated, weights.down);
}

/// Whether the losses of what a forward pass computes count for the step's.
enum class Losses { added, none };

/// x [N, D] -> [N, D]. Fills `saved` with what `recompute` keeps for backward.
template <OpSet Ops>
ResidualStream<Ops> decoder_forward(Ops& ops, ResidualStream<Ops>& x, const DecoderWeights<Ops>& weights,
                                    Recompute recompute, BlockActivations<Ops>& saved,
                                    Losses losses = Losses::added) {
  ResidualStream<Ops> x_mid = attention_forward(ops, x, weights, recompute, saved);
  if (recompute >= Recompute::attention) saved.attention = {};
  const bool sparse = weights.router.defined();
  if (sparse)
    experts_gate_up_forward(ops, x_mid, weights, recompute, saved);
  else
    gate_up_forward(ops, x_mid, weights, recompute, saved);
  if (sparse && losses == Losses::added) ops.router_losses(site::router_losses, saved.routing);
  ResidualStream<Ops> out = sparse ? experts_down_forward(ops, x_mid.x, weights, recompute, saved)
                                   : down_forward(ops, x_mid.x, weights, recompute, saved);
  if (recompute == Recompute::block) {
    saved = {};
    saved.x = x.x;
  }
  return out;
}

/// Forward from `saved.x` once more, as far as backward reads it: the last GEMM's value is the next block's
/// input.
template <OpSet Ops>
void forward_again(Ops& ops, const DecoderWeights<Ops>& weights, BlockActivations<Ops>& saved) {
  const auto again = ops.recompute();
  ResidualStream<Ops> x{saved.x, {}};
  ResidualStream<Ops> x_mid = attention_forward(ops, x, weights, Recompute::norms_swiglu, saved);
  if (weights.router.defined())
    experts_gate_up_forward(ops, x_mid, weights, Recompute::norms_swiglu, saved);
  else
    gate_up_forward(ops, x_mid, weights, Recompute::norms_swiglu, saved);
}

/// Rows of all tensor ranks that are being gathered.
template <OpSet Ops>
using Gathering = decltype(std::declval<Ops&>().begin_all_gather(std::declval<const Site&>(),
                                                                 std::declval<typename Ops::Operand>()));
/// Gradients of rows of the residual stream of all tensor ranks.
template <OpSet Ops>
using GradientGathering = decltype(std::declval<Ops&>().begin_all_gather(
    std::declval<const Site&>(), std::declval<typename Ops::Tensor>()));

/// The gradient of a block's output on its way to where the MLP's backward reads it: to all tensor ranks, or
/// to the ranks of the experts.
template <OpSet Ops>
struct Upstream {
  GradientGathering<Ops> rows;
  Dispatching<Ops> tokens;
};

/// Begins to send dx, the gradient of the output of `block`. Where its experts are chosen again, they are not
/// known yet, and experts_backward sends it. Where nothing is sent, what the block above deferred runs now:
/// it would hold its operands through all of this block.
template <OpSet Ops>
Upstream<Ops> begin_upstream(Ops& ops, std::int64_t block, const typename Ops::Tensor& dx,
                             const BlockActivations<Ops>& saved) {
  const bool sparse = ops.model().sparse(block - 1), known = saved.routing.defined();
  if (sparse ? !known || ops.expert_ranks() == 1 : ops.tensor_ranks() == 1) ops.run_deferred();
  if (!sparse) return {ops.begin_all_gather(site::down, dx), {}};
  if (!known) return {};
  return {{}, begin_tokens(ops, dx, saved.routing)};
}

/// The gathered gradient as GEMMs with `weight` read it.
template <OpSet Ops>
typename Ops::Operand gathered(Ops& ops, const Site& site, GradientGathering<Ops> gathering,
                               const typename Ops::Weight& weight) {
  const typename Ops::Tensor rows = ops.wait(std::move(gathering));
  return ops.gradient_operand(site, rows, weight);
}

/// The rows that the GEMM of `site` read in forward, which its weight's gradient reads: the norm's value,
/// `kept` or not. Those of several tensor ranks begin to be gathered, made again before where they were not
/// kept; with one rank the norm's backward makes them again (norm_backward).
template <OpSet Ops>
Gathering<Ops> begin_forward_rows(Ops& ops, const Site& norm, const Site& site, typename Ops::Operand kept,
                                  const typename Ops::Tensor& x, const typename Ops::Vector& gain,
                                  const typename Ops::Weight& weight) {
  if (ops.tensor_ranks() > 1 && !kept.defined()) {
    const auto again = ops.recompute();
    kept = ops.rms_norm(norm, x, gain, weight, ReadBy::weight_gradient).y;
  }
  return ops.begin_all_gather(site, std::move(kept));
}

/// dx plus the gradient of the norm's input x. `rows`: what begin_forward_rows began; with one rank the
/// norm's value behind it, kept or made again.
template <OpSet Ops>
typename Ops::Tensor norm_backward(Ops& ops, const Site& site, typename Ops::Tensor dy,
                                   const typename Ops::Tensor& x, const typename Ops::Vector& gain,
                                   const typename Ops::Tensor& rstd, typename Ops::Tensor dx,
                                   const typename Ops::VectorGradient& dgain,
                                   const typename Ops::Weight& weight, Gathering<Ops>& rows) {
  const bool one = ops.tensor_ranks() == 1;
  typename Ops::Operand kept;
  if (one) kept = std::exchange(rows.value, {});
  NormGradient<Ops> norm =
      ops.rms_norm_backward(site, std::move(dy), x, gain, rstd, std::move(dx), dgain, weight, std::move(kept),
                            one ? ForwardValue::read : ForwardValue::unread);
  if (one) rows.value = std::move(norm.value);
  return std::move(norm.dx);
}

/// The gradient of x_mid: that of the block's output, dx, plus the branch's.
template <OpSet Ops>
typename Ops::Tensor mlp_backward(Ops& ops, typename Ops::Tensor dx, GradientGathering<Ops> upstream,
                                  const DecoderWeights<Ops>& weights, const DecoderGradients<Ops>& gradients,
                                  BlockActivations<Ops>& saved) {
  Gathering<Ops> rows =
      begin_forward_rows(ops, site::norm_mlp, site::gate_up, std::exchange(saved.normed_mid, {}), saved.x_mid,
                         weights.norm_mlp, weights.gate_up);
  typename Ops::Operand dy = gathered(ops, site::down, std::move(upstream), weights.down);
  typename Ops::Tensor d_gated = ops.linear_input_gradient(site::down, dy, weights.down);
  GateGradient<Ops> gate = ops.gate_backward(site::gate, std::move(d_gated), std::exchange(saved.gate_up, {}),
                                             std::exchange(saved.gated, {}), weights.gate_up, weights.down);
  defer_weight_gradient(ops, site::down, std::move(dy), std::move(gate.gated), gradients.down);
  typename Ops::Tensor d_normed =
      own_rows(ops, site::gate_up, ops.linear_input_gradient(site::gate_up, gate.d_gate_up, weights.gate_up));
  dx = norm_backward(ops, site::norm_mlp, std::move(d_normed), saved.x_mid, weights.norm_mlp, saved.rstd_mid,
                     std::move(dx), gradients.norm_mlp, weights.gate_up, rows);
  saved.x_mid = typename Ops::Tensor{};
  defer_weight_gradient(ops, site::gate_up, std::move(gate.d_gate_up), std::move(rows), gradients.gate_up);
  return dx;
}

/// The gradient of qkv before rope; with qk_norm and of latent attention, behind it.
template <OpSet Ops>
typename Ops::Tensor attention_gradient(Ops& ops, GradientGathering<Ops> upstream,
                                        const DecoderWeights<Ops>& weights,
                                        const DecoderGradients<Ops>& gradients,
                                        BlockActivations<Ops>& saved) {
  if (!saved.attention.defined()) {
    if (!saved.qkv.defined()) saved.qkv = latent_up_again(ops, weights, saved);
    const auto again = ops.recompute();
    saved.attention = ops.attention(site::attention, ops.heads(saved.qkv));
  }
  typename Ops::Operand dy = gathered(ops, site::attention_output, std::move(upstream), weights.output);
  typename Ops::Operand attended = std::exchange(saved.attended, {});
  if (!attended.defined())
    attended = ops.attention_operand(site::attention_output, saved.attention, weights.output,
                                     ReadBy::weight_gradient);
  defer_weight_gradient(ops, site::attention_output, dy, std::move(attended), gradients.output);
  typename Ops::Tensor d_attended = ops.linear_input_gradient(site::attention_output, dy, weights.output);
  dy = {};
  if (!saved.qkv.defined()) saved.qkv = latent_up_again(ops, weights, saved);
  typename Ops::Heads heads = ops.heads(std::exchange(saved.qkv, {}));
  typename Ops::HeadGradients gradient = ops.attention_backward(
      site::attention, std::move(d_attended), std::move(heads), std::exchange(saved.attention, {}));
  if (ops.model().qk_norm || weights.key_value_down.defined()) return ops.together(std::move(gradient));
  return ops.rope_backward(site::rope, std::move(gradient));
}

/// The gradient of the block's input: that of x_mid, dx, plus the branch's.
template <OpSet Ops>
typename Ops::Tensor attention_backward(Ops& ops, typename Ops::Tensor dx, const DecoderWeights<Ops>& weights,
                                        const DecoderGradients<Ops>& gradients,
                                        BlockActivations<Ops>& saved) {
  GradientGathering<Ops> upstream = ops.begin_all_gather(site::attention_output, dx);
  if (weights.key_value_down.defined()) {
    typename Ops::Tensor d_qkv = attention_gradient(ops, std::move(upstream), weights, gradients, saved);
    return latent_backward(ops, std::move(dx), std::move(d_qkv), weights, gradients, saved);
  }
  Gathering<Ops> rows =
      begin_forward_rows(ops, site::norm_attention, site::qkv, std::exchange(saved.normed, {}), saved.x,
                         weights.norm_attention, weights.qkv);
  typename Ops::Tensor d_qkv = attention_gradient(ops, std::move(upstream), weights, gradients, saved);
  if (ops.model().qk_norm) {
    ops.qk_norm_rope_backward(site::qk_norm_rope, d_qkv, saved.qkv_raw, weights.q_norm, weights.k_norm,
                              saved.qk_rstd, gradients.q_norm, gradients.k_norm);
    saved.qkv_raw = typename Ops::Tensor{};
  }
  if (ops.model().qkv_bias) ops.bias_gradient(site::qkv_bias, d_qkv, gradients.qkv_bias);
  typename Ops::Operand dqkv = ops.gradient_operand(site::qkv, d_qkv, weights.qkv);
  d_qkv = typename Ops::Tensor{};
  typename Ops::Tensor d_normed =
      own_rows(ops, site::qkv, ops.linear_input_gradient(site::qkv, dqkv, weights.qkv));
  dx = norm_backward(ops, site::norm_attention, std::move(d_normed), saved.x, weights.norm_attention,
                     saved.rstd, std::move(dx), gradients.norm_attention, weights.qkv, rows);
  defer_weight_gradient(ops, site::qkv, std::move(dqkv), std::move(rows), gradients.qkv);
  return dx;
}

/// From dx, the gradient of the block's output, which `upstream` brings where it is read, to that of its
/// input. Adds the gradients of the block's parameters to `gradients`, those of matrices when they are run
/// (spec/step/deferred.hpp). What is undefined in `saved` is computed again. Consumes `saved`. `block` from
/// 1, for the names of moments.
template <OpSet Ops>
typename Ops::Tensor decoder_backward(Ops& ops, std::int64_t block, typename Ops::Tensor dx,
                                      Upstream<Ops> upstream, const DecoderWeights<Ops>& weights,
                                      const DecoderGradients<Ops>& gradients, BlockActivations<Ops> saved) {
  if (!saved.gate_up.defined()) {
    ops.moment("backward of block", block, ", its forward again");
    forward_again(ops, weights, saved);
  }
  ops.moment("backward of block", block, ", MLP");
  dx = weights.router.defined()
           ? experts_backward(ops, std::move(dx), std::move(upstream.tokens), weights, gradients, saved)
           : mlp_backward(ops, std::move(dx), std::move(upstream.rows), weights, gradients, saved);
  ops.moment("backward of block", block, ", attention");
  return attention_backward(ops, std::move(dx), weights, gradients, saved);
}

}  // namespace assay::spec::step
