#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::rms_norm {

template <class S>
struct Forward {
  Tensor<S> y;     ///< shape of x
  Tensor<S> rstd;  ///< [N], 1 / sqrt(mean x^2 + eps) of each row
};

/// RMS normalisation over the last axis.                                   [spec/ops/rms_norm/rms_norm.md]
/// Equation:  rstd_n = (mean_d x_nd^2 + eps)^(-1/2),  y_nd = x_nd * rstd_n * g_d
/// Source:    Zhang, Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019, eq. (4), with eps
/// Shapes:    x [..., D], gain [D] -> y [..., D], rstd [N], N = product of the leading axes
/// Errors:    SpecError rms_norm_c1, rms_norm_c2, rms_norm_c3
/// Numerics:  double, sums left to right
template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& gain, double eps);

template <class S>
struct Backward {
  Tensor<S> dx;     ///< shape of x
  Tensor<S> dgain;  ///< [D]
};

/// Gradient of `forward` for upstream dy.
/// Equation:  dg_d = sum_n dy_nd * xhat_nd,  dx_nd = rstd_n * (dy_nd*g_d - xhat_nd * mean_d'(dy_nd' g_d'
/// xhat_nd'))
///            with xhat_nd = x_nd * rstd_n
/// Shapes:    dy, x [..., D], gain [D], rstd [N] -> dx [..., D], dgain [D]
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& gain, const Tensor<S>& rstd);

}  // namespace assay::reference::rms_norm
