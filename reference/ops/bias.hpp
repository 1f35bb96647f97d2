#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::bias {

/// One number added to each column.                                              [spec/ops/bias/bias.md]
/// Equation:  y_no = x_no + b_o
/// Source:    Qwen Team, "Qwen2 Technical Report", 2024, section 2.2.1
/// Shapes:    x [..., out], bias [out] -> y [..., out]
/// Errors:    SpecError bias_c1, bias_c2
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Tensor<S>& bias);

/// Gradient of `forward` for the bias; that for x is dy itself.
/// Equation:  db_o = sum_n dy_no
/// Shapes:    dy [..., out] -> dbias [out]
/// Errors:    SpecError bias_c2
/// Numerics:  double, sums in the order of n
template <class S>
Tensor<S> backward(const Tensor<S>& dy);

}  // namespace assay::reference::bias
