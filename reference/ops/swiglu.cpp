#include "reference/ops/swiglu.hpp"

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::reference::swiglu {

namespace {
template <class S>
spec::swiglu::Shape shape_of(const Tensor<S>& tensor) {
  const Index F = tensor.extent(-1);
  return {.N = F ? tensor.size() / F : 0, .F = F};
}

template <class S>
S sigmoid(S x) {
  using std::exp;
  return S(1) / (S(1) + exp(-x));
}

/// gate (1 - sigma) z'(gate).
template <class S>
S derivative_of_sigma(S gate, S sigma, Activation activation) {
  const S rest = gate * (S(1) - sigma);
  return activation == Activation::silu ? rest : rest * spec::swiglu::argument_slope(gate);
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& gate, const Tensor<S>& up, Activation activation) {
  spec::swiglu::check(shape_of(gate), shape_of(up));

  Tensor<S> y(gate.shape());
  for (Index i = 0; i < y.size(); ++i)
    y[i] = gate[i] * sigmoid(spec::swiglu::argument(gate[i], activation)) * up[i];
  return y;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& gate, const Tensor<S>& up, Activation activation) {
  spec::swiglu::check(shape_of(gate), shape_of(up));
  spec::swiglu::check(shape_of(gate), shape_of(dy));

  Backward<S> gradient{Tensor<S>(gate.shape()), Tensor<S>(gate.shape())};
  for (Index i = 0; i < gate.size(); ++i) {
    const S sigma = sigmoid(spec::swiglu::argument(gate[i], activation));
    gradient.dup[i] = dy[i] * gate[i] * sigma;
    gradient.dgate[i] = dy[i] * up[i] * sigma * (S(1) + derivative_of_sigma(gate[i], sigma, activation));
  }
  return gradient;
}

template Tensor<double> forward(const Tensor<double>&, const Tensor<double>&, Activation);
template Tensor<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, Activation);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   Activation);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    Activation);

}  // namespace assay::reference::swiglu
