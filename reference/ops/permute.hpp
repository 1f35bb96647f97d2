#pragma once
#include <optional>

#include "reference/tensor.hpp"

namespace assay::reference::permute {

/// Where the choices of tokens stand in the order of experts.                   [spec/ops/permute/permute.md]
struct Plan {
  Index N = 0, A = 0;  ///< rows of tokens, choices of each
  Ids offsets;         ///< [X + 1], rows of expert e are [offset_e, offset_{e+1})
  Ids tokens, slots;   ///< [R], of each row
  Ids rows;            ///< [N, A], row of each choice, -1 where it was dropped
  double dropped = 0;  ///< share of the choices without a row

  Index R() const { return static_cast<Index>(tokens.size()); }
};

/// A stable sort of the choices by expert; with a capacity factor each expert takes only its first ones of
/// each of `groups` groups of N / groups consecutive tokens. Shapes:    chosen [N, A] in [0, X) Errors:
/// SpecError permute_c1, .._c2, .._c3, .._c5
Plan plan(const Ids& chosen, Index N, Index A, Index X, std::optional<double> capacity_factor = std::nullopt,
          Index groups = 1);

/// Equation:  y_r = x_{token_r}
/// Shapes:    x [..., D] -> y [R, D]
/// Errors:    SpecError permute_c1, permute_c4
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Plan& plan);

/// Gradient of `forward`: dx_n = sum_a dy_{row_na} over the choices that have a row.
/// Shapes:    dy [R, D] -> dx [N, D]
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Plan& plan);

/// Equation:  y_n = sum_a weight_na z_{row_na} over the choices that have a row
/// Shapes:    z [R, D], weights [N, A] -> y [N, D]
template <class S>
Tensor<S> unpermute(const Tensor<S>& z, const Tensor<S>& weights, const Plan& plan);

template <class S>
struct UnpermuteBackward {
  Tensor<S> dz;        ///< [R, D]
  Tensor<S> dweights;  ///< [N, A], 0 where the choice was dropped
};

/// Gradient of `unpermute` for upstream dy [N, D].
/// Equation:  dz_r = weight_r dy_{token_r},  dweight_na = sum_d dy_nd z_{row_na, d}
template <class S>
UnpermuteBackward<S> unpermute_backward(const Tensor<S>& dy, const Tensor<S>& z, const Tensor<S>& weights,
                                        const Plan& plan);

}  // namespace assay::reference::permute
