#pragma once
// What the gate of swiglu goes through: gate * sigma(z(gate)). Equation and source:
// spec/ops/swiglu/swiglu.md. No other header, so that kernels can include it.

namespace assay::spec::swiglu {

enum class Activation { silu, gelu_tanh };

/// z(g) = slope g (1 + cubic g^2) of gelu_tanh: 2 sqrt(2/pi), and the coefficient of the source.
inline constexpr double slope = 1.5957691216057308, cubic = 0.044715;

/// z of a number of any kind.
template <class S>
S argument(S gate, Activation activation) {
  if (activation == Activation::silu) return gate;
  return S(slope) * gate * (S(1) + S(cubic) * gate * gate);
}

/// z' of gelu_tanh; that of silu is 1.
template <class S>
S argument_slope(S gate) {
  return S(slope) * (S(1) + S(3 * cubic) * gate * gate);
}

}  // namespace assay::spec::swiglu
