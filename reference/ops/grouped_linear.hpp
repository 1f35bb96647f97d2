#pragma once
#include "reference/ops/quantise.hpp"
#include "reference/tensor.hpp"

namespace assay::reference::grouped_linear {

/// The rows of each expert times its weight. [spec/ops/grouped_linear/grouped_linear.md] Equation:  y_ro =
/// sum_i x_ri w_eoi for the rows r of expert e Source:    Gale et al., "MegaBlocks", arXiv:2211.15841,
/// section 2 Shapes:    x [R, in], weights [X, out, in], offsets [X + 1] -> y [R, out] Errors:    SpecError
/// grouped_linear_c1, .._c2, .._c3 Numerics:  double, sums left to right With `recipe` the values are those
/// of x and of all weights, as one matrix, that its GEMMs read.
using quantise::Recipe;
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Tensor<S>& weights, const Ids& offsets,
                  Recipe recipe = Recipe::none);

template <class S>
struct Backward {
  Tensor<S> dx;        ///< [R, in]
  Tensor<S> dweights;  ///< [X, out, in]; zeros of an expert without rows
};

/// Gradient of `forward` for upstream dy.
/// Equation:  dx_ri = sum_o dy_ro w_eoi,  dw_eoi = sum of dy_ro x_ri over the rows of expert e
/// Errors:    as `forward`, and grouped_linear_c4
/// With `recipe` dx is of what its GEMMs read; dweights are of the exact values.
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& weights, const Ids& offsets,
                     Recipe recipe = Recipe::none);

}  // namespace assay::reference::grouped_linear
