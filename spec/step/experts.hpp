#pragma once
// The MLP branch as a mixture of experts, written once: a router sends each token to A of X experts, whose
// results, weighted, are added to the residual; shared experts see every row. The weight of a row is
// applied in its gated activation, so that no pass of its own applies it (spec/ops/router/router.md).
//
// With several expert ranks a token travels once to each rank that holds one of its experts, and the sum of
// their results comes back.
#include "spec/step/activations.hpp"
#include "spec/step/deferred.hpp"
#include "spec/step/op_set.hpp"

namespace assay::spec::step {

/// Tokens on their way to the ranks of their experts.
template <OpSet Ops>
using Dispatching = decltype(std::declval<Ops&>().begin_dispatch(
    std::declval<const Site&>(), std::declval<typename Ops::Operand>(),
    std::declval<const typename Ops::Routing&>(), Pass::backward));

/// base + what the experts made of each token. `beside` is what runs while tokens travel back; it does not
/// with one rank.
template <OpSet Ops, class Beside>
typename Ops::Tensor combined(Ops& ops, const Site& site, const typename Ops::Tensor& base,
                              typename Ops::Tensor rows, const typename Ops::Routing& routing, Pass pass,
                              const Beside& beside) {
  if (ops.expert_ranks() == 1) return ops.combine(site, base, rows, routing, pass);
  typename Ops::Tensor of_arrived = ops.combine(site::return_rows, {}, rows, routing, pass);
  rows = typename Ops::Tensor{};
  auto returning = ops.begin_return(site::return_rows, std::move(of_arrived), routing);
  beside();
  const typename Ops::Tensor returned = ops.wait(std::move(returning));
  return ops.add_returned(site, base, returned, routing, pass);
}

/// Forward as far as the experts' first GEMM.
template <OpSet Ops>
void experts_gate_up_forward(Ops& ops, ResidualStream<Ops>& x, const DecoderWeights<Ops>& weights,
                             Recompute recompute, BlockActivations<Ops>& saved) {
  const bool keep = recompute == Recompute::none, travels = ops.expert_ranks() > 1;
  const Normed<Ops> norm =
      rms_norm(ops, site::norm_mlp, x, weights.norm_mlp, weights.experts_gate_up, readers(keep));
  saved.x_mid = x.x;
  saved.rstd_mid = norm.rstd;
  if (keep) saved.normed_mid = ops.kept(norm.y);
  saved.routing = ops.route(site::router, norm.y, weights.router, weights.router_bias);
  const auto shared = [&] {
    if (weights.shared_gate_up.defined())
      saved.shared_gate_up = ops.linear(site::shared_gate_up, norm.y, weights.shared_gate_up);
  };
  auto sending = ops.begin_dispatch(site::dispatch, norm.y, saved.routing, Pass::forward);
  if (travels) shared();
  typename Ops::Operand arrived = ops.wait(std::move(sending));
  const typename Ops::Operand rows = ops.permute(site::permute, arrived, saved.routing, Pass::forward);
  if (travels && keep) saved.arrived = ops.kept(arrived);
  arrived = {};
  saved.gate_up = ops.grouped_linear(site::experts_gate_up, rows, weights.experts_gate_up, saved.routing);
  if (!travels) shared();
}

template <OpSet Ops>
ResidualStream<Ops> experts_down_forward(Ops& ops, const typename Ops::Tensor& x,
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
  return {combined(ops, site::combine, base, std::move(rows), saved.routing, Pass::forward, shared), {}};
}

/// Defers what a collective of expert ranks can hide. With one of them none begins in this branch, and rows
/// are freed at once.
template <OpSet Ops, class Work>
void defer_to_exchange(Ops& ops, Work work) {
  if (ops.expert_ranks() == 1) return work();
  ops.defer(std::move(work));
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
  defer_to_exchange(ops, [&ops, dy = std::exchange(dy, {}), gated = std::exchange(gate.gated, {}),
                          into = gradients.shared_down] {
    ops.linear_weight_gradient(site::shared_down, dy, gated, into);
  });
  typename Ops::Tensor d_normed =
      ops.linear_input_gradient(site::shared_gate_up, gate.d_gate_up, weights.shared_gate_up);
  return {std::move(gate.d_gate_up), std::move(d_normed)};
}

/// Begins to send dx, the gradient of a block's output, to the ranks of its experts, in the compute type:
/// what experts multiply in FP8 they cast themselves.
template <OpSet Ops>
Dispatching<Ops> begin_tokens(Ops& ops, const typename Ops::Tensor& dx,
                              const typename Ops::Routing& routing) {
  const typename Ops::Weight unquantised{};
  return ops.begin_dispatch(site::dispatch, ops.gradient_operand(site::experts_down, dx, unquantised),
                            routing, Pass::backward);
}

/// The gradient of x_mid: that of the block's output, dx, plus the branch's. `upstream`: dx on its way, where
/// it has begun to be sent.
template <OpSet Ops>
typename Ops::Tensor experts_backward(Ops& ops, typename Ops::Tensor dx, Dispatching<Ops> upstream,
                                      const DecoderWeights<Ops>& weights,
                                      const DecoderGradients<Ops>& gradients, BlockActivations<Ops>& saved) {
  const bool travels = ops.expert_ranks() > 1;
  const typename Ops::Routing routing = std::exchange(saved.routing, {});
  if (!upstream.value.defined()) upstream = begin_tokens(ops, dx, routing);
  typename Ops::Operand normed = std::exchange(saved.normed_mid, {});
  Dispatching<Ops> arriving;  // what the experts' first GEMM read, kept or on its way once more
  arriving.value = std::exchange(saved.arrived, {});
  SharedGradient<Ops> of_shared;
  const auto shared = [&] {
    if (weights.shared_gate_up.defined())
      of_shared = shared_experts_backward(ops, dx, weights, gradients, saved);
  };
  if (travels) {
    if (!normed.defined()) {
      const auto again = ops.recompute();
      normed = ops.rms_norm(site::norm_mlp, saved.x_mid, weights.norm_mlp, weights.experts_gate_up,
                            ReadBy::weight_gradient)
                   .y;
      arriving = ops.begin_dispatch(site::dispatch, normed, routing, Pass::backward);
    }
    shared();
  }
  typename Ops::Operand dy = ops.wait(std::move(upstream));
  dy = ops.permute(site::permute, dy, routing, Pass::backward);
  typename Ops::Tensor d_gated =
      ops.grouped_input_gradient(site::experts_down, dy, weights.experts_down, routing);
  WeightedGateGradient<Ops> gate = ops.weighted_gate_backward(
      site::experts_gate, std::move(d_gated), std::exchange(saved.gate_up, {}),
      std::exchange(saved.gated, {}), routing, weights.experts_gate_up, weights.experts_down);
  auto weights_return = ops.begin_return(site::return_weights, std::exchange(gate.d_weights, {}), routing);
  defer_to_exchange(ops, [&ops, dy = std::exchange(dy, {}), gated = std::exchange(gate.gated, {}),
                          into = gradients.experts_down, routing] {
    ops.grouped_weight_gradient(site::experts_down, dy, gated, into, routing);
  });
  typename Ops::Tensor d_rows =
      ops.grouped_input_gradient(site::experts_gate_up, gate.d_gate_up, weights.experts_gate_up, routing);
  typename Ops::Tensor d_weights = ops.wait(std::move(weights_return));
  d_weights = ops.returned_weights(site::return_weights, std::move(d_weights), routing);
  // What the norm's output is read by: router, shared experts, routed experts. Their gradients are summed.
  typename Ops::Operand d_logits =
      ops.router_gradient(site::router, std::exchange(d_weights, {}), routing, weights.router);
  typename Ops::Tensor d_normed = ops.linear_input_gradient(site::router, d_logits, weights.router);
  if (!travels) shared();
  if (of_shared.d_gate_up.defined())
    ops.add(site::shared_gate_up, d_normed, std::exchange(of_shared.d_normed, {}));
  d_normed = combined(ops, site::combine_gradient, d_normed, std::exchange(d_rows, {}), routing,
                      Pass::backward, [] {});
  NormGradient<Ops> norm = ops.rms_norm_backward(
      site::norm_mlp, std::move(d_normed), saved.x_mid, weights.norm_mlp, saved.rstd_mid, std::move(dx),
      gradients.norm_mlp, weights.experts_gate_up, std::move(normed), ForwardValue::read);
  saved.x_mid = typename Ops::Tensor{};
  defer_weight_gradient(ops, site::router, std::move(d_logits), norm.value, gradients.router);
  if (of_shared.d_gate_up.defined())
    defer_weight_gradient(ops, site::shared_gate_up, std::move(of_shared.d_gate_up), norm.value,
                          gradients.shared_gate_up);
  if (!travels) arriving.value = std::move(norm.value);
  norm.value = {};
  defer_to_exchange(ops, [&ops, d_gate_up = std::exchange(gate.d_gate_up, {}), arriving = std::move(arriving),
                          into = gradients.experts_gate_up, routing]() mutable {
    typename Ops::Operand arrived = ops.wait(std::move(arriving));
    const typename Ops::Operand rows = ops.permute(site::permute, arrived, routing, Pass::backward);
    arrived = {};
    ops.grouped_weight_gradient(site::experts_gate_up, d_gate_up, rows, into, routing);
  });
  return std::move(norm.dx);
}

}  // namespace assay::spec::step
