// The trainer's ops of a mixture of experts.
#include <ATen/ATen.h>

#include <utility>

#include "impl/model/tensor_ops.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "impl/ops/linear/linear.hpp"
#include "spec/ops/permute/permute.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::impl {

TensorOps::Routing TensorOps::route(const Site& site, const Operand& x, const Weight& router,
                                    const Vector& bias) {
  const spec::Experts& how = *model().experts;
  // Each tensor rank routes whole sequences (placement_c14), but for validation's batches, whose routers have
  // no losses and drop nothing.
  const std::int64_t B = context_.batch.B, groups = B % tensor_ranks() == 0 ? B / tensor_ranks() : 1;
  TORCH_CHECK(!drops() || B % tensor_ranks() == 0, "a capacity is one of a sequence");
  Routing routing = run(site, {}, [&] {
    router::Choice choice = router::forward(linear::forward_wide(x.value, router.matrix.values()), how,
                                            groups, router::keeps_logits(how, auxiliary_.z), bias);
    permute::Order order = permute::order(choice.experts, how.count);
    if (drops()) {
      const spec::permute::Shape sequence{.N = context_.batch.T, .A = how.active, .X = how.count};
      order = permute::limited(order, choice.experts, choice.counts,
                               spec::permute::capacity(sequence, auxiliary_.capacity));
    }
    return Routing{std::move(choice), std::move(order), {}};
  });
  if (expert_ranks() > 1) begin_routing(routing);
  return routing;
}

void TensorOps::router_losses(const Site& site, const Routing& routing) {
  loss_.routing.push_back(run(site, {}, [&] {
    return router::losses(routing.choice, *model().experts, auxiliary_.tokens,
                          drops() ? routing.order.ends : at::Tensor(),
                          /*probabilities=*/auxiliary_.shares.defined());
  }));
}

TensorOps::Operand TensorOps::router_gradient(const Site& site, Tensor d_weights, const Routing& routing,
                                              const Weight& router) {
  router::Auxiliary of_layer = auxiliary_;
  if (of_layer.shares.defined()) of_layer.shares = of_layer.shares[model().sparse_before(block_ - 1)];
  return {run(site, {},
              [&] {
                return router::backward(d_weights, routing.choice, *model().experts,
                                        router.matrix.values().scalar_type(), of_layer);
              }),
          {}};
}

TensorOps::Operand TensorOps::permute(const Site& site, const Operand& x, const Routing& routing,
                                      spec::Pass pass) {
  return {run(site, {}, [&] { return permute::gather(x.value, routing.rows(), pass); }), {}};
}

at::Tensor TensorOps::combine(const Site& site, const Tensor& base, const Tensor& rows,
                              const Routing& routing, spec::Pass pass) {
  return run(site, {}, [&] { return permute::combine(base, rows, routing.rows(), pass); });
}

/// Forward's GEMM where `role` is that of an activation, else the gradient of its input. In FP8 the rows are
/// cast here, with the scale of all expert ranks' rows. Those behind the last expert's end, which nothing
/// writes, would set it: where rows are dropped, none is quantised (config_c44).
at::Tensor TensorOps::grouped_gemm(const Site& site, const Operand& left, const Weight& weight,
                                   const Routing& routing, spec::quantise::Role role) {
  const at::Tensor& ends = routing.rows().ends;
  const bool forward = role == spec::quantise::Role::activation;
  if (!weight.of_experts())
    return run(site, {}, [&] {
      const at::Tensor values = weight.matrix.values();
      return forward ? grouped_linear::forward(left.value, values, ends)
                     : grouped_linear::backward_input(left.value, values, ends);
    });
  TORCH_CHECK(!drops(), "rows that are not written would be quantised");
  const auto rows = quantised(site, left.value, weight.at_gemm, role, ReadBy::forward, context_.experts).rows,
             matrix =
                 weight_twin(site, weight.as_read(), forward ? ReadBy::forward : ReadBy::weight_gradient);
  return run(site, {}, [&] {
    return forward ? grouped_linear::forward(rows, matrix, ends, context_.compute)
                   : grouped_linear::backward_input(rows, matrix, ends, context_.compute);
  });
}

at::Tensor TensorOps::grouped_linear(const Site& site, const Operand& x, const Weight& weight,
                                     const Routing& routing) {
  return grouped_gemm(site, x, weight, routing, spec::quantise::Role::activation);
}

at::Tensor TensorOps::grouped_input_gradient(const Site& site, const Operand& dy, const Weight& weight,
                                             const Routing& routing) {
  return grouped_gemm(site, dy, weight, routing, spec::quantise::Role::gradient);
}

void TensorOps::grouped_weight_gradient(const Site& site, const Operand& dy, const Operand& x,
                                        const Gradient& dweight, const Routing& routing) {
  run(site, {}, [&] {
    grouped_linear::backward_weight(dy.value, x.value, routing.rows().ends, dweight.into, dweight.sum);
  });
}

TensorOps::Operand TensorOps::weighted_gate(const Site& site, const Tensor& gate_up, const Routing& routing,
                                            const Weight&, ReadBy) {
  return {run(site, {},
              [&] {
                return swiglu::forward_weighted(gate_up, spec::swiglu::activation_of(model().mlp),
                                                routing.row_weights());
              }),
          {}};
}

spec::step::WeightedGateGradient<TensorOps> TensorOps::weighted_gate_backward(const Site& site,
                                                                              Tensor d_gated, Tensor gate_up,
                                                                              Operand kept,
                                                                              const Routing& routing,
                                                                              const Weight&, const Weight&) {
  const bool again = !kept.defined();
  Tensor d_weights = at::empty_like(routing.row_weights().values);
  Tensor d_gate_up = run(site, {d_gated, gate_up}, [&] {
    return swiglu::backward_weighted(d_gated, gate_up, spec::swiglu::activation_of(model().mlp),
                                     again ? impl::ForwardValue::again : impl::ForwardValue::kept,
                                     routing.row_weights(), d_weights);
  });
  // A choice without a row has no part in the output.
  if (drops() && expert_ranks() == 1) d_weights.masked_fill_(routing.rows().rows.lt(0), 0);
  if (again) kept = {std::move(d_gated), {}};
  return {{std::move(d_gate_up), {}}, std::move(kept), std::move(d_weights)};
}

}  // namespace assay::impl
