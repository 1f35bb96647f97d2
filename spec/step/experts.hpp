#pragma once
// The MLP branch as a mixture of experts, written once: a router sends each token's row to A of X experts,
// whose results, weighted, are added to the residual; shared experts see every row. The weight of a row is
// applied in its gated activation, so that no pass of its own applies it (spec/ops/router.md).
#include "spec/step/activations.hpp"
#include "spec/step/op_set.hpp"

namespace assay::spec::step {

/// Rows of this rank's tokens, by expert, become the rows of the experts that this rank holds, by expert.
/// With one expert rank they are the same. `beside` is what runs while rows travel; it does not with one
/// rank.
template <OpSet Ops, class Beside>
typename Ops::Operand dispatched(Ops& ops, typename Ops::Operand rows, const typename Ops::Routing& routing,
                                 Pass pass, const Beside& beside) {
  auto sending = ops.begin_dispatch(site::dispatch, std::move(rows), routing);
  if (ops.expert_ranks() > 1) beside();
  typename Ops::Operand arrived = ops.wait(std::move(sending));
  return ops.by_expert(site::dispatch, std::move(arrived), routing, pass);
}

/// The way back of `dispatched`.
template <OpSet Ops, class Beside>
typename Ops::Tensor returned(Ops& ops, typename Ops::Tensor rows, const typename Ops::Routing& routing,
                              Pass pass, const Beside& beside) {
  typename Ops::Tensor leaving = ops.by_arrival(site::return_rows, std::move(rows), routing, pass);
  auto sending = ops.begin_return(site::return_rows, std::move(leaving), routing);
  if (ops.expert_ranks() > 1) beside();
  return ops.wait(std::move(sending));
}

/// Forward as far as the experts' first GEMM.
template <OpSet Ops>
void experts_gate_up_forward(Ops& ops, const typename Ops::Tensor& x, const DecoderWeights<Ops>& weights,
                             Recompute recompute, BlockActivations<Ops>& saved) {
  const bool keep = recompute == Recompute::none;
  const Normed<Ops> norm =
      ops.rms_norm(site::norm_mlp, x, weights.norm_mlp, weights.experts_gate_up, readers(keep));
  saved.x_mid = x;
  saved.rstd_mid = norm.rstd;
  if (keep) saved.normed_mid = ops.kept(norm.y);
  saved.routing = ops.route(site::router, norm.y, weights.router, weights.router_bias);
  const auto shared = [&] {
    if (weights.shared_gate_up.defined())
      saved.shared_gate_up = ops.linear(site::shared_gate_up, norm.y, weights.shared_gate_up);
  };
  typename Ops::Operand rows = ops.permute(site::permute, norm.y, saved.routing, Pass::forward);
  rows = dispatched(ops, std::move(rows), saved.routing, Pass::forward, shared);
  saved.gate_up = ops.grouped_linear(site::experts_gate_up, rows, weights.experts_gate_up, saved.routing);
  if (ops.expert_ranks() == 1)
    shared();
  else if (keep)
    saved.rows = ops.kept(rows);
}

template <OpSet Ops>
typename Ops::Tensor experts_down_forward(Ops& ops, const typename Ops::Tensor& x,
                                          const DecoderWeights<Ops>& weights, Recompute recompute,
                                          BlockActivations<Ops>& saved) {
  const bool keep = recompute == Recompute::none;
  typename Ops::Tensor base = x;
  const auto shared = [&] {
    if (!weights.shared_gate_up.defined()) return;
    const typename Ops::Operand gated =
        ops.gate(site::shared_gate, saved.shared_gate_up, weights.shared_down, readers(keep));
    if (keep) saved.shared_gated = ops.kept(gated);
    base = ops.linear_residual(site::shared_down, x, gated, weights.shared_down);
  };
  if (ops.expert_ranks() == 1) shared();
  typename Ops::Operand gated = ops.weighted_gate(site::experts_gate, saved.gate_up, saved.routing,
                                                  weights.experts_down, readers(keep));
  if (keep) saved.gated = ops.kept(gated);
  typename Ops::Tensor rows =
      ops.grouped_linear(site::experts_down, gated, weights.experts_down, saved.routing);
  gated = {};
  rows = returned(ops, std::move(rows), saved.routing, Pass::forward, shared);
  return ops.combine(site::combine, base, rows, saved.routing, Pass::forward);
}

/// The gradient of the shared experts' input. Reads dx, the gradient of the block's output.
template <OpSet Ops>
SharedGradient<Ops> shared_experts_backward(Ops& ops, const typename Ops::Tensor& dx,
                                            const DecoderWeights<Ops>& weights,
                                            const DecoderGradients<Ops>& gradients,
                                            BlockActivations<Ops>& saved) {
  typename Ops::Operand dy = ops.gradient_operand(site::shared_down, dx, weights.shared_down);
  typename Ops::Tensor d_gated = ops.linear_input_gradient(site::shared_down, dy, weights.shared_down);
  GateGradient<Ops> gate =
      ops.gate_backward(site::shared_gate, std::move(d_gated), std::exchange(saved.shared_gate_up, {}),
                        std::exchange(saved.shared_gated, {}), weights.shared_gate_up, weights.shared_down);
  ops.linear_weight_gradient(site::shared_down, dy, gate.gated, gradients.shared_down);
  gate.gated = {};
  dy = {};
  typename Ops::Tensor d_normed =
      ops.linear_input_gradient(site::shared_gate_up, gate.d_gate_up, weights.shared_gate_up);
  return {std::move(gate.d_gate_up), std::move(d_normed)};
}

/// dx holds the gradient of the block's output and, on return, that of x_mid.
template <OpSet Ops>
void experts_backward(Ops& ops, typename Ops::Tensor& dx, const DecoderWeights<Ops>& weights,
                      const DecoderGradients<Ops>& gradients, BlockActivations<Ops>& saved) {
  const typename Ops::Routing routing = std::exchange(saved.routing, {});
  SharedGradient<Ops> of_shared;
  const auto shared = [&] {
    if (weights.shared_gate_up.defined())
      of_shared = shared_experts_backward(ops, dx, weights, gradients, saved);
  };
  typename Ops::Operand dy =
      ops.permute(site::permute, ops.gradient_operand(site::experts_down, dx, weights.experts_down), routing,
                  Pass::backward);
  dy = dispatched(ops, std::move(dy), routing, Pass::backward, shared);
  typename Ops::Tensor d_gated =
      ops.grouped_input_gradient(site::experts_down, dy, weights.experts_down, routing);
  WeightedGateGradient<Ops> gate = ops.weighted_gate_backward(
      site::experts_gate, std::move(d_gated), std::exchange(saved.gate_up, {}),
      std::exchange(saved.gated, {}), routing, weights.experts_gate_up, weights.experts_down);
  auto weights_return = ops.begin_return(site::return_weights, std::exchange(gate.d_weights, {}), routing);
  ops.grouped_weight_gradient(site::experts_down, dy, gate.gated, gradients.experts_down, routing);
  gate.gated = {};
  dy = {};
  typename Ops::Tensor d_weights = ops.wait(std::move(weights_return));
  d_weights = ops.by_slot(site::return_weights, std::move(d_weights), routing);
  // What the norm's output is read by: router, shared experts, routed experts. Their gradients are summed.
  const typename Ops::Operand d_logits =
      ops.router_gradient(site::router, std::exchange(d_weights, {}), routing, weights.router);
  typename Ops::Tensor d_normed = ops.linear_input_gradient(site::router, d_logits, weights.router);
  if (ops.expert_ranks() == 1) shared();
  if (of_shared.d_gate_up.defined())
    ops.add_residual(site::shared_gate_up, d_normed, std::exchange(of_shared.d_normed, {}));
  typename Ops::Operand d_shared = std::exchange(of_shared.d_gate_up, {});
  typename Ops::Tensor d_rows =
      ops.grouped_input_gradient(site::experts_gate_up, gate.d_gate_up, weights.experts_gate_up, routing);
  d_rows = returned(ops, std::move(d_rows), routing, Pass::backward, [] {});
  d_normed = ops.combine(site::combine_gradient, d_normed, d_rows, routing, Pass::backward);
  d_rows = typename Ops::Tensor{};
  const typename Ops::Operand normed = ops.rms_norm_backward(
      site::norm_mlp, std::move(d_normed), saved.x_mid, weights.norm_mlp, saved.rstd_mid, dx,
      gradients.norm_mlp, weights.experts_gate_up, std::exchange(saved.normed_mid, {}), ForwardValue::read);
  saved.x_mid = typename Ops::Tensor{};
  const auto of_normed = [&] {
    ops.linear_weight_gradient(site::router, d_logits, normed, gradients.router);
    if (d_shared.defined())
      ops.linear_weight_gradient(site::shared_gate_up, d_shared, normed, gradients.shared_gate_up);
    d_shared = {};
  };
  if (ops.expert_ranks() == 1) of_normed();
  typename Ops::Operand rows = std::exchange(saved.rows, {});
  if (rows.defined()) {
    of_normed();
  } else {
    rows = ops.permute(site::permute, normed, routing, Pass::backward);
    rows = dispatched(ops, std::move(rows), routing, Pass::backward, of_normed);
  }
  ops.grouped_weight_gradient(site::experts_gate_up, gate.d_gate_up, rows, gradients.experts_gate_up,
                              routing);
}

}  // namespace assay::spec::step
