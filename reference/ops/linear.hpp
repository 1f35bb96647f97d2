#pragma once
#include "reference/tensor.hpp"
#include "spec/ops/quantise/quantise.hpp"

namespace assay::reference::linear {

using spec::quantise::Recipe;

/// What a linear's GEMMs read. Rows of `parts` equal parts, each with scales of its own, are those of
/// micro-batches that are computed apart.
struct Precision {
  Recipe recipe = Recipe::none;
  Index parts = 1;
  // NOLINTNEXTLINE(google-explicit-constructor): one micro-batch, unless said
  Precision(Recipe of = Recipe::none, Index in_parts = 1) : recipe(of), parts(in_parts) {}
};

/// GEMM with a weight stored [out, in].                           [spec/ops/linear/linear.md]
/// Equation:  y_no = sum_i x_ni * w_oi
/// Source:    Touvron et al., "LLaMA", 2023, section 2.2
/// Shapes:    x [..., in], weight [out, in] -> y [..., out], N = product of the leading axes
/// Errors:    SpecError linear_c1, linear_c2
/// Numerics:  double, sums left to right; with a recipe, of the values that x and weight have in FP8
template <class S>
Tensor<S> forward(const Tensor<S>& x, const Tensor<S>& weight, const Precision& precision = {});

template <class S>
struct Backward {
  Tensor<S> dx;       ///< shape of x
  Tensor<S> dweight;  ///< [out, in]
};

/// Gradient of `forward` for upstream dy. With a recipe each of the two GEMMs reads values that are quantised
/// along the axis it sums over, dy among them, and the rounding itself has no gradient (straight-through).
/// Equation:  dx_ni = sum_o dy_no * w_oi,  dw_oi = sum_n dy_no * x_ni
/// Shapes:    dy [..., out], x [..., in], weight [out, in] -> dx [..., in], dweight [out, in]
/// Errors:    as `forward`, and linear_c3
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& weight,
                     const Precision& precision = {});

}  // namespace assay::reference::linear
