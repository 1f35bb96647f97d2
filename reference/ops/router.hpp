#pragma once
#include "reference/tensor.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::reference::router {

template <class S>
struct Forward {
  Tensor<S> logits;   ///< [N, X]
  Tensor<S> scores;   ///< [N, X]
  Ids chosen;         ///< [N, A], the best first
  Tensor<S> weights;  ///< [N, A]
  Tensor<S> t;        ///< [N], what the weights were divided by
};

/// The experts that each token visits, and their weights.                       [spec/ops/router/router.md]
/// Equation:  s = softmax(x W^T) or sigmoid(x W^T); chosen = A best of s + bias within the best groups, the
///            lower index of equal ones first; weight = scaling_factor s_chosen / t
/// Source:    Mixtral, arXiv:2401.04088, section 2.1; DeepSeek-V3, arXiv:2412.19437, eq. (13) to (16)
/// Shapes:    x [..., D], weight [X, D], bias [X] with router_bias, else without entries
/// Errors:    SpecError router_c1, .._c2, .._c3
template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& weight, const Tensor<S>& bias,
                   const spec::Experts& experts);

/// The probabilities [N, X] that auxiliary losses read: scores over their sum.
template <class S>
Tensor<S> probabilities(const Tensor<S>& scores, const spec::Experts& experts);

template <class S>
struct Backward {
  Tensor<S> dx;       ///< shape of x
  Tensor<S> dweight;  ///< [X, D]
};

/// Gradient of `forward` for upstreams of its weights [N, A], of `probabilities` and of the logits [N, X];
/// the last two may be without entries. Errors:    as `forward`, and SpecError router_c4
template <class S>
Backward<S> backward(const Tensor<S>& dweights, const Tensor<S>& dprobabilities, const Tensor<S>& dlogits,
                     const Forward<S>& saved, const Tensor<S>& x, const Tensor<S>& weight,
                     const spec::Experts& experts);

}  // namespace assay::reference::router
