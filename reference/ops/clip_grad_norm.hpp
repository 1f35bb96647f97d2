#pragma once
#include <vector>

#include "reference/tensor.hpp"

namespace assay::reference::clip_grad_norm {

struct Clipped {
  double norm;         ///< global L2 norm before clipping
  double coefficient;  ///< what every gradient was multiplied by, in (0, 1]
};

/// Scales all gradients together so that their global L2 norm is at most max_norm.
/// [spec/ops/clip_grad_norm/clip_grad_norm.md] Equation:  norm = sqrt(sum_i g_i^2),  g_i <- min(1, max_norm /
/// (norm + 1e-6)) g_i Source:    Pascanu, Mikolov, Bengio, ICML 2013, algorithm 1; the 1e-6 of PyTorch's
/// clip_grad_norm_ Shapes:    gradients of any shapes, changed in place Errors:    SpecError
/// clip_grad_norm_c1, clip_grad_norm_c2; every gradient is then as it was Numerics:  double, one sum over all
/// tensors in order
template <class S>
Clipped clip(const std::vector<Tensor<S>*>& gradients, double max_norm);

}  // namespace assay::reference::clip_grad_norm
