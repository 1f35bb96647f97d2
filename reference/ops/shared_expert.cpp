#include "reference/ops/shared_expert.hpp"

#include "reference/counted.hpp"
#include "reference/matrices.hpp"
#include "reference/ops/linear.hpp"
#include "spec/ops/shared_expert/shared_expert.hpp"

namespace assay::reference::shared_expert {

namespace {
template <class S>
spec::shared_expert::Shape checked(const Tensor<S>& x, Index routed_entries, const Weights<S>& weights) {
  const spec::shared_expert::Shape shape{.N = x.extent(0), .D = x.extent(1), .S = weights.down.extent(1)};
  spec::shared_expert::check(shape, {weights.gate_up.extent(0), weights.gate_up.extent(1)},
                             weights.down.extent(0), routed_entries);
  return shape;
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& routed, const Weights<S>& weights,
                   Activation activation) {
  const auto shape = checked(x, routed.size(), weights);
  Forward<S> out;
  const Tensor<S> gate_up = linear::forward(x, weights.gate_up);
  out.gate = columns(gate_up, 0, shape.S);
  out.up = columns(gate_up, shape.S, shape.S);
  out.activated = swiglu::forward(out.gate, out.up, activation);
  out.y = linear::forward(out.activated, weights.down);
  out.y.flat() += routed.flat();
  return out;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Forward<S>& saved, const Tensor<S>& x,
                     const Weights<S>& weights, Activation activation) {
  checked(x, dy.size(), weights);
  const auto down = linear::backward(dy, saved.activated, weights.down);
  const auto gated = swiglu::backward(down.dx, saved.gate, saved.up, activation);
  const auto gate_up = linear::backward(beside<S>({gated.dgate, gated.dup}, 1), x, weights.gate_up);
  return {gate_up.dx, gate_up.dweight, down.dweight};
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, const Weights<double>&,
                                 Activation);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Weights<Counted>&,
                                  Activation);
template Backward<double> backward(const Tensor<double>&, const Forward<double>&, const Tensor<double>&,
                                   const Weights<double>&, Activation);
template Backward<Counted> backward(const Tensor<Counted>&, const Forward<Counted>&, const Tensor<Counted>&,
                                    const Weights<Counted>&, Activation);

}  // namespace assay::reference::shared_expert
