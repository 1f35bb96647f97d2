#pragma once
#include <vector>

#include "reference/tensor.hpp"

namespace assay::reference::rope {

/// Rotary position embedding of every head.                                     [spec/ops/rope.md]
/// Equation:  y_e = x_e cos(phi_e) - x_{e+E/2} sin(phi_e),  y_{e+E/2} = x_{e+E/2} cos(phi_e) + x_e
/// sin(phi_e),
///            phi_e = position_bt * inverse_frequency_e, e in [0, E/2)
/// Source:    Su et al., "RoFormer", 2021, eq. (34), halves paired as in Hugging Face's Llama
/// Shapes:    x [B, T, H, E], B*T positions, E/2 inverse frequencies (spec::rope::inverse_frequencies) -> y
/// [B, T, H, E] Errors:    SpecError rope_c1, rope_c3, rope_c5
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies);

/// Gradient of `forward` for upstream dy: the rotation by the negative angle.
/// Shapes:    dy [B, T, H, E] -> dx [B, T, H, E]
/// Errors:    as `forward`
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& positions, const std::vector<double>& inverse_frequencies);

}  // namespace assay::reference::rope
