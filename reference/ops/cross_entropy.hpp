#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::cross_entropy {

template <class S>
struct Forward {
  S loss = 0;           ///< cross_entropy + z_loss
  S cross_entropy = 0;  ///< sum of the valid rows' negative log likelihoods [nat] / normalizer
  S z_loss = 0;         ///< z_loss coefficient * sum of the valid rows' lse^2 / normalizer
  Tensor<S> lse;        ///< [N], log sum_v exp(logit_nv) of every row, ignored ones too
  Index valid = 0;      ///< targets other than -100
};

/// Negative log likelihood of the targets under softmax, with z-loss.
/// [spec/ops/cross_entropy/cross_entropy.md] Equation:  loss = (1/Z) sum_n (lse_n - logit_{n,y_n}) + (z/Z)
/// sum_n lse_n^2 over the rows with y_n != -100 Source:    Goodfellow, Bengio, Courville, "Deep Learning",
/// 2016, eq. (6.29), (6.30); z-loss: "PaLM", 2022, section 5 Shapes:    logits [..., V], N targets, N =
/// product of the leading axes; `normalizer` Z = valid tokens of the whole
///            optimizer step, stated by the caller
/// Errors:    SpecError cross_entropy_c1, .._c2, .._c3, .._c4, .._c5
/// Numerics:  double, the row's maximum subtracted, sums left to right
template <class S>
Forward<S> forward(const Tensor<S>& logits, const Ids& targets, double normalizer, double z_loss);

/// Gradient of `forward`'s loss times `upstream` with respect to the logits.
/// Equation:  dlogit_nv = (upstream/Z) (p_nv (1 + 2 z lse_n) - [v = y_n]), p_nv = exp(logit_nv - lse_n); 0 if
/// ignored Shapes:    logits [..., V], N targets, lse [N] -> dlogits [..., V] Errors:    as `forward`
template <class S>
Tensor<S> backward(double upstream, const Tensor<S>& logits, const Ids& targets, const Tensor<S>& lse,
                   double normalizer, double z_loss);

}  // namespace assay::reference::cross_entropy
