#pragma once
#include "reference/ops/swiglu.hpp"
#include "reference/tensor.hpp"

namespace assay::reference::shared_expert {

using spec::swiglu::Activation;

template <class S>
struct Weights {
  Tensor<S> gate_up;  ///< [2S, D], gate above up
  Tensor<S> down;     ///< [D, S]
};

/// Every value that backward reads, and the result.
template <class S>
struct Forward {
  Tensor<S> gate, up, activated;  ///< [N, S]
  Tensor<S> y;                    ///< [N, D]
};

/// A gated MLP that every token visits, added to the routed experts' sum.
/// [spec/ops/shared_expert/shared_expert.md] Equation:  y = routed + down(a(gate x) * up x) Source:    Dai et
/// al., "DeepSeekMoE", arXiv:2401.06066, eq. (9) Shapes:    x, routed [N, D] Errors:    SpecError
/// shared_expert_c1, shared_expert_c2
template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& routed, const Weights<S>& weights,
                   Activation activation);

template <class S>
struct Backward {
  Tensor<S> dx;               ///< [N, D]; the gradient of routed is dy itself
  Tensor<S> dgate_up, ddown;  ///< of the weights
};

/// Gradient of `forward` for upstream dy [N, D].
/// Errors:    as `forward`
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Forward<S>& saved, const Tensor<S>& x,
                     const Weights<S>& weights, Activation activation);

}  // namespace assay::reference::shared_expert
