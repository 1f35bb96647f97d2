#pragma once
#include <vector>

#include "reference/tensor.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::reference::rope {

/// Rotary position embedding of every head.                                     [spec/ops/rope/rope.md]
/// Equation:  y_i = c (x_i cos(phi_e) - x_j sin(phi_e)),  y_j = c (x_j cos(phi_e) + x_i sin(phi_e)),
///            phi_e = position_bt * inverse_frequency_e, e in [0, E/2); the pair (i, j) is (e, e + E/2) or
///            (2e, 2e + 1) and c = form.factor
/// Source:    Su et al., "RoFormer", 2021, eq. (34) (neighbours); halves as in Hugging Face's Llama; c: Peng
/// et al., "YaRN", 2023
/// Shapes:    x [B, T, H, E], B*T positions, E/2 inverse frequencies (spec::rope::inverse_frequencies) -> y
/// [B, T, H, E] Errors:    SpecError rope_c1, rope_c3, rope_c5
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies,
                  const spec::rope::Form& form = {});

/// Gradient of `forward` for upstream dy: the rotation by the negative angle, times c.
/// Shapes:    dy [B, T, H, E] -> dx [B, T, H, E]
/// Errors:    as `forward`
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& positions, const std::vector<double>& inverse_frequencies,
                   const spec::rope::Form& form = {});

}  // namespace assay::reference::rope
