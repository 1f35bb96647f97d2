#pragma once
#include "reference/tensor.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::reference::swiglu {

using spec::swiglu::Activation;

/// The SiLU or the GELU of gate, times up.                                      [spec/ops/swiglu/swiglu.md]
/// Equation:  y_i = gate_i * sigma_i * up_i,  sigma_i = 1 / (1 + exp(-z(gate_i)))
/// Source:    Shazeer, "GLU Variants Improve Transformer", 2020, eq. (5) and (6)
/// Shapes:    gate, up [..., F] -> y [..., F]
/// Errors:    SpecError swiglu_c1, swiglu_c2
template <class S>
Tensor<S> forward(const Tensor<S>& gate, const Tensor<S>& up, Activation activation);

template <class S>
struct Backward {
  Tensor<S> dgate;  ///< shape of gate
  Tensor<S> dup;    ///< shape of gate
};

/// Gradient of `forward` for upstream dy.
/// Equation:  dup_i = dy_i gate_i sigma_i,  dgate_i = dy_i up_i sigma_i (1 + gate_i (1 - sigma_i) z'(gate_i))
/// Shapes:    dy, gate, up [..., F] -> dgate, dup [..., F]
/// Errors:    as `forward`
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& gate, const Tensor<S>& up, Activation activation);

}  // namespace assay::reference::swiglu
