#include "impl/ops/swiglu/swiglu.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::impl::swiglu {

namespace {
void check(const at::Tensor& gate_up, std::int64_t up, const at::Tensor& rows) {
  spec::swiglu::check({.N = gate_up.size(0), .F = gate_up.size(1) / 2}, {.N = rows.size(0), .F = up});
}

at::Tensor to_math(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }
}  // namespace

at::Tensor forward(const at::Tensor& gate_up, Activation activation) {
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::forward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check_contiguous("swiglu", {gate_up});
  return gate_up.is_cpu() ? cpu::forward(gate_up, activation) : cuda::forward(gate_up, activation);
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value) {
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::backward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check(gate_up, dy.size(1), dy);
  check_contiguous("swiglu", {dy, gate_up});
  return gate_up.is_cpu() ? cpu::backward(dy, gate_up, activation, value)
                          : cuda::backward(dy, gate_up, activation, value);
}

namespace {
void check_weights(const at::Tensor& gate_up, const RowWeights& weights) {
  TORCH_CHECK(weights.values.numel() >= gate_up.size(0) && weights.slots.numel() == gate_up.size(0) &&
                  weights.values.scalar_type() == math_type(gate_up.scalar_type()),
              "swiglu: weights ", describe(weights.values), ", slots ", describe(weights.slots), " of ",
              describe(gate_up));
  check_contiguous("swiglu", {weights.values, weights.slots});
}
}  // namespace

at::Tensor forward_weighted(const at::Tensor& gate_up, Activation activation, const RowWeights& weights) {
  // No token chose an expert of this rank.
  if (gate_up.size(0) == 0) return at::empty({0, gate_up.size(1) / 2}, gate_up.options());
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::forward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check_contiguous("swiglu", {gate_up});
  check_weights(gate_up, weights);
  return gate_up.is_cpu() ? cpu::forward_weighted(gate_up, activation, weights)
                          : cuda::forward_weighted(gate_up, activation, weights);
}

at::Tensor backward_weighted(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value,
                             const RowWeights& weights, at::Tensor dweights) {
  if (gate_up.size(0) == 0) return gate_up;
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::backward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check(gate_up, dy.size(1), dy);
  check_contiguous("swiglu", {dy, gate_up, dweights});
  check_weights(gate_up, weights);
  TORCH_CHECK(
      dweights.sizes() == weights.values.sizes() && dweights.scalar_type() == weights.values.scalar_type(),
      "swiglu: gradient of weights ", describe(dweights));
  return gate_up.is_cpu() ? cpu::backward_weighted(dy, gate_up, activation, value, weights, dweights)
                          : cuda::backward_weighted(dy, gate_up, activation, value, weights, dweights);
}

namespace aten {
namespace {
at::Tensor sigmoid_of(const at::Tensor& gate, Activation activation) {
  if (activation == Activation::silu) return gate.sigmoid();
  return (gate * spec::swiglu::slope * (1 + gate * gate * spec::swiglu::cubic)).sigmoid();
}

/// gate (1 - sigmoid) z'(gate).
at::Tensor derivative_of_sigmoid(const at::Tensor& gate, const at::Tensor& sigmoid, Activation activation) {
  const at::Tensor rest = gate * (1 - sigmoid);
  if (activation == Activation::silu) return rest;
  return rest * (spec::swiglu::slope * (1 + gate * gate * (3 * spec::swiglu::cubic)));
}
}  // namespace

at::Tensor forward(const at::Tensor& gate_up, Activation activation) {
  const auto halves = to_math(gate_up).chunk(2, -1);
  return (halves[0] * sigmoid_of(halves[0], activation)).mul_(halves[1]).to(gate_up.scalar_type());
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value) {
  const auto halves = to_math(gate_up).chunk(2, -1);
  const at::Tensor gate = halves[0], up = halves[1], upstream = to_math(dy).clone();
  const at::Tensor sigmoid = sigmoid_of(gate, activation);
  const at::Tensor dgate = upstream * up * sigmoid * (1 + derivative_of_sigmoid(gate, sigmoid, activation)),
                   dup = upstream * (gate * sigmoid);
  if (value == ForwardValue::again) dy.copy_((gate * sigmoid).mul_(up));
  return gate_up.copy_(at::cat({dgate, dup}, -1));
}
}  // namespace aten

}  // namespace assay::impl::swiglu
