#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::embedding {

/// Rows of a learned table by token id. [spec/ops/embedding/embedding.md] Equation:  y_nd = table[ids_n, d]
/// Source:    Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.4, without the factor
/// sqrt(D) Shapes:    table [V, D], N ids -> y [N, D] Errors:    SpecError embedding_c1, embedding_c2
template <class S>
Tensor<S> forward(const Tensor<S>& table, const Ids& ids);

/// Gradient of `forward` for upstream dy.
/// Equation:  dtable_vd = sum over n with ids_n = v of dy_nd
/// Shapes:    dy [..., D] of N*D entries, N ids -> dtable [V, D]
/// Errors:    as `forward`, and embedding_c3
/// Numerics:  double, in the order of the ids
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& ids, Index V);

}  // namespace assay::reference::embedding
