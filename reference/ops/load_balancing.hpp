#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::load_balancing {

/// Each expert's share of the choices of a group of consecutive rows; a row's sum is 1.
/// Shapes:    chosen [N, A] in [0, X) -> [G, X]
template <class S>
Tensor<S> shares(const Ids& chosen, Index A, Index X, Index G);

/// The balance loss of one layer. [spec/ops/load_balancing/load_balancing.md] Equation:  (X / Z) sum_n sum_e
/// f_{g(n), e} p_ne Source:    Fedus et al., "Switch Transformers", arXiv:2101.03961, eq. (4) to (6) Shapes:
/// p [N, X], f [G, X]; the normalizer Z = tokens of the whole optimizer step, stated by the caller Errors:
/// SpecError load_balancing_c1, .._c2, .._c3; `active` bounds the entries of f
template <class S>
S forward(const Tensor<S>& p, const Tensor<S>& f, Index active, double normalizer);

/// Gradient of `forward` times `upstream` with respect to p [N, X]; f has none.
/// Equation:  dp_ne = upstream (X / Z) f_{g(n), e}
template <class S>
Tensor<S> backward(double upstream, const Tensor<S>& f, Index N, Index active, double normalizer);

/// The router's z-loss of one layer.
/// Equation:  (1 / Z) sum_n lse_n^2
/// Source:    Zoph et al., "ST-MoE", arXiv:2202.08906, eq. (5)
/// Shapes:    logits [N, X]
/// Errors:    SpecError load_balancing_c1, load_balancing_c3
template <class S>
struct ZLoss {
  S loss = 0;
  Tensor<S> lse;  ///< [N]
};
template <class S>
ZLoss<S> z_forward(const Tensor<S>& logits, double normalizer);

/// Gradient of `z_forward`'s loss times `upstream` with respect to the logits.
/// Equation:  dl_ne = upstream (2 / Z) lse_n exp(l_ne - lse_n)
template <class S>
Tensor<S> z_backward(double upstream, const Tensor<S>& logits, const Tensor<S>& lse, double normalizer);

}  // namespace assay::reference::load_balancing
