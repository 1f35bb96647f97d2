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
  saved.attention = ops.attention(site::attention, qkv);
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

/// Begins to gather the gradient dx of what the GEMM of `site` added to the residual.
template <OpSet Ops>
Gathering<Ops> begin_upstream(Ops& ops, const Site& site, const typename Ops::Tensor& dx,
                              const typename Ops::Weight& weight) {
  return ops.begin_all_gather(site, ops.gradient_operand(site, dx, weight));
}

/// Begins to gather the rows that the GEMM of `site` read in forward: its weight's gradient asks for them.
/// They are the norm's value, kept or computed again.
template <OpSet Ops>
Gathering<Ops> begin_forward_rows(Ops& ops, const Site& norm, const Site& site, typename Ops::Operand kept,
                                  const typename Ops::Tensor& x, const typename Ops::Vector& gain,
                                  const typename Ops::Weight& weight) {
  if (!kept.defined()) {
    const auto again = ops.recompute();
    kept = ops.rms_norm(norm, x, gain, weight, ReadBy::weight_gradient).y;
  }
  return ops.begin_all_gather(site, std::move(kept));
}

/// dx holds the gradient of the block's output and, on return, that of x_mid: the residual's plus the
/// branch's. With several tensor ranks `upstream` is dx on its way to all of them, and the gradient of x_mid,
/// on its way likewise, is returned. Nothing waits for a weight's gradient, so there each is computed while a
/// collective runs: the GEMM hides it.
template <OpSet Ops>
Gathering<Ops> mlp_backward(Ops& ops, typename Ops::Tensor& dx, Gathering<Ops> upstream,
                            const DecoderWeights<Ops>& weights, const DecoderGradients<Ops>& gradients,
                            BlockActivations<Ops>& saved) {
  const bool overlaps = ops.tensor_ranks() > 1;
  typename Ops::Operand normed = std::exchange(saved.normed_mid, {});
  Gathering<Ops> forward_rows, x_mid_gradient;
  if (overlaps)
    forward_rows = begin_forward_rows(ops, site::norm_mlp, site::gate_up, std::exchange(normed, {}),
                                      saved.x_mid, weights.norm_mlp, weights.gate_up);
  else
    upstream = begin_upstream(ops, site::down, dx, weights.down);
  typename Ops::Operand dy = ops.wait(std::move(upstream));
  typename Ops::Tensor d_gated = ops.linear_input_gradient(site::down, dy, weights.down);
  GateGradient<Ops> gate = ops.gate_backward(site::gate, std::move(d_gated), std::exchange(saved.gate_up, {}),
                                             std::exchange(saved.gated, {}), weights.gate_up, weights.down);
  const auto down_gradient = [&] {
    ops.linear_weight_gradient(site::down, dy, gate.gated, gradients.down);
    gate.gated = {};
    dy = {};
  };
  if (!overlaps) down_gradient();
  auto scattering = ops.begin_reduce_scatter(
      site::gate_up, ops.linear_input_gradient(site::gate_up, gate.d_gate_up, weights.gate_up));
  if (overlaps) down_gradient();
  normed = ops.rms_norm_backward(site::norm_mlp, ops.wait(std::move(scattering)), saved.x_mid,
                                 weights.norm_mlp, saved.rstd_mid, dx, gradients.norm_mlp, weights.gate_up,
                                 std::move(normed), overlaps ? ForwardValue::unread : ForwardValue::read);
  saved.x_mid = typename Ops::Tensor{};
  if (overlaps) {
    x_mid_gradient = begin_upstream(ops, site::attention_output, dx, weights.output);
    normed = ops.wait(std::move(forward_rows));
  }
  ops.linear_weight_gradient(site::gate_up, gate.d_gate_up, normed, gradients.gate_up);
  return x_mid_gradient;
}

/// Operands of the gradient of the attention output's weight.
template <OpSet Ops>
struct OutputOperands {
  typename Ops::Operand upstream, attended;
};
template <OpSet Ops>
void output_weight_gradient(Ops& ops, const DecoderGradients<Ops>& gradients, OutputOperands<Ops>& of) {
  ops.linear_weight_gradient(site::attention_output, of.upstream, of.attended, gradients.output);
  of = {};
}

/// The gradient of qkv before rope; with qk_norm and of latent attention, behind it. With several tensor
/// ranks the gradient of the output's weight is left to the caller, who hides a collective behind it.
template <OpSet Ops>
typename Ops::Tensor attention_gradient(Ops& ops, const typename Ops::Tensor& dx, Gathering<Ops> upstream,
                                        const DecoderWeights<Ops>& weights,
                                        const DecoderGradients<Ops>& gradients, BlockActivations<Ops>& saved,
                                        OutputOperands<Ops>& output) {
  const bool overlaps = ops.tensor_ranks() > 1;
  if (!saved.attention.defined()) {
    if (!saved.qkv.defined()) saved.qkv = latent_up_again(ops, weights, saved);
    const auto again = ops.recompute();
    saved.attention = ops.attention(site::attention, saved.qkv);
  }
  if (!overlaps) upstream = begin_upstream(ops, site::attention_output, dx, weights.output);
  output.upstream = ops.wait(std::move(upstream));
  output.attended = std::exchange(saved.attended, {});
  if (!output.attended.defined())
    output.attended = ops.attention_operand(site::attention_output, saved.attention, weights.output,
                                            ReadBy::weight_gradient);
  typename Ops::Tensor dy;
  if (overlaps) {
    dy = ops.linear_input_gradient(site::attention_output, output.upstream, weights.output);
  } else {
    const typename Ops::Operand read = output.upstream;
    output_weight_gradient(ops, gradients, output);
    dy = ops.linear_input_gradient(site::attention_output, read, weights.output);
  }
  if (!saved.qkv.defined()) saved.qkv = latent_up_again(ops, weights, saved);
  typename Ops::Tensor qkv = std::exchange(saved.qkv, {});
  typename Ops::Attention attention = std::exchange(saved.attention, {});
  if (ops.model().qk_norm || weights.key_value_down.defined())
    return ops.attention_backward(site::attention, std::move(dy), std::move(qkv), std::move(attention));
  return ops.attention_backward_through_rope(site::attention, std::move(dy), std::move(qkv),
                                             std::move(attention));
}

/// Whether the gradient of a block's input is sent to the experts of the block `below` as soon as it is
/// there: where several ranks hold them, and what they chose is kept.
template <OpSet Ops>
bool leaves_early(Ops& ops, const BlockActivations<Ops>* below) {
  return below && ops.expert_ranks() > 1 && below->routing.defined();
}

/// dx holds the gradient of x_mid and, on return, that of the block's input. `upstream` as for mlp_backward;
/// `left` is what experts_backward left; `below_gathers`: the block below has a dense MLP, of which tensor
/// ranks hold parts.
/// Returned is the gradient of the block's input on its way to where the block `below`, null behind the first
/// one, reads it: to all tensor ranks, or to the ranks of its experts.
template <OpSet Ops>
Gathering<Ops> attention_backward(Ops& ops, const BlockActivations<Ops>* below, bool below_gathers,
                                  typename Ops::Tensor& dx, Gathering<Ops> upstream, FirstGradient<Ops> left,
                                  const DecoderWeights<Ops>& weights, const DecoderGradients<Ops>& gradients,
                                  BlockActivations<Ops>& saved) {
  const bool overlaps = ops.tensor_ranks() > 1;
  Gathering<Ops> forward_rows, input_gradient;
  if (overlaps)
    forward_rows = begin_forward_rows(ops, site::norm_attention, site::qkv, std::exchange(saved.normed, {}),
                                      saved.x, weights.norm_attention, weights.qkv);
  OutputOperands<Ops> output;
  typename Ops::Tensor d_qkv =
      attention_gradient(ops, dx, std::move(upstream), weights, gradients, saved, output);
  if (weights.key_value_down.defined()) {
    latent_backward(ops, dx, std::move(d_qkv), weights, gradients, saved);
    if (leaves_early(ops, below)) input_gradient = begin_upstream(ops, dx, weights, below->routing);
    experts_first_gradient(ops, gradients, std::move(left));
    return input_gradient;
  }
  if (ops.model().qk_norm) {
    ops.qk_norm_rope_backward(site::qk_norm_rope, d_qkv, saved.qkv_raw, weights.q_norm, weights.k_norm,
                              saved.qk_rstd, gradients.q_norm, gradients.k_norm);
    saved.qkv_raw = typename Ops::Tensor{};
  }
  if (ops.model().qkv_bias) ops.bias_gradient(site::qkv_bias, d_qkv, gradients.qkv_bias);
  const typename Ops::Operand dqkv = ops.gradient_operand(site::qkv, d_qkv, weights.qkv);
  d_qkv = typename Ops::Tensor{};
  auto scattering =
      ops.begin_reduce_scatter(site::qkv, ops.linear_input_gradient(site::qkv, dqkv, weights.qkv));
  if (overlaps) output_weight_gradient(ops, gradients, output);
  typename Ops::Operand normed = ops.rms_norm_backward(
      site::norm_attention, ops.wait(std::move(scattering)), saved.x, weights.norm_attention, saved.rstd, dx,
      gradients.norm_attention, weights.qkv, std::exchange(saved.normed, {}),
      overlaps ? ForwardValue::unread : ForwardValue::read);
  if (below_gathers)
    input_gradient = begin_upstream(ops, site::down, dx, weights.down);
  else if (leaves_early(ops, below))
    input_gradient = begin_upstream(ops, dx, weights, below->routing);
  if (overlaps) normed = ops.wait(std::move(forward_rows));
  ops.linear_weight_gradient(site::qkv, dqkv, normed, gradients.qkv);
  experts_first_gradient(ops, gradients, std::move(left));
  return input_gradient;
}

/// Turns dx, the gradient of the block's output, into the gradient of its input, in place, and adds the
/// gradients of the block's parameters to `gradients`. What is undefined in `saved` is computed again.
/// Consumes `saved`. `block` from 1, for the names of moments. `upstream` is what the block above returned:
/// dx on its way to all tensor ranks, or to the ranks of experts.
template <OpSet Ops>
Gathering<Ops> decoder_backward(Ops& ops, std::int64_t block, const BlockActivations<Ops>* below,
                                typename Ops::Tensor& dx, Gathering<Ops> upstream,
                                const DecoderWeights<Ops>& weights, const DecoderGradients<Ops>& gradients,
                                BlockActivations<Ops> saved) {
  if (!saved.gate_up.defined()) {
    ops.moment("backward of block", block, ", its forward again");
    forward_again(ops, weights, saved);
  }
  ops.moment("backward of block", block, ", MLP");
  Gathering<Ops> x_mid_gradient;
  FirstGradient<Ops> left;
  const bool several = ops.tensor_ranks() > 1;
  if (weights.router.defined()) {
    left =
        experts_backward(ops, dx, std::move(upstream), weights, gradients, saved, leaves_early(ops, below));
    if (several) x_mid_gradient = begin_upstream(ops, site::attention_output, dx, weights.output);
  } else {
    x_mid_gradient = mlp_backward(ops, dx, std::move(upstream), weights, gradients, saved);
  }
  ops.moment("backward of block", block, ", attention");
  return attention_backward(ops, below, several && below && !ops.model().sparse(block - 2), dx,
                            std::move(x_mid_gradient), std::move(left), weights, gradients, saved);
}

}  // namespace assay::spec::step
