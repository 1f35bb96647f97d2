#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::qk_norm {

template <class S>
struct Forward {
  Tensor<S> q;       ///< [B, T, H, E], normalised
  Tensor<S> k;       ///< [B, T, K, E], normalised
  Tensor<S> q_rstd;  ///< [B*T*H]
  Tensor<S> k_rstd;  ///< [B*T*K]
};

/// RMS normalisation of every query and key head.                               [spec/ops/qk_norm.md]
/// Equation:  rms_norm over E of q with q_gain and of k with k_gain
/// Source:    Yang et al., "Qwen3 Technical Report", 2025, section 2
/// Shapes:    q [B, T, H, E], k [B, T, K, E], q_gain, k_gain [E]
/// Errors:    SpecError qk_norm_c1 .. qk_norm_c4
template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& q_gain, const Tensor<S>& k_gain,
                   double eps);

template <class S>
struct Backward {
  Tensor<S> dq;       ///< [B, T, H, E]
  Tensor<S> dk;       ///< [B, T, K, E]
  Tensor<S> dq_gain;  ///< [E], summed over batch, tokens and heads
  Tensor<S> dk_gain;  ///< [E]
};

/// Gradient of `forward` for upstream dq_out, dk_out. q and k are its inputs; `saved` is what it returned.
/// Shapes:    dq_out, q [B, T, H, E], dk_out, k [B, T, K, E], q_gain, k_gain [E]
/// Errors:    SpecError qk_norm_c2 (q and k, or the upstreams, disagree in B, T or E)
template <class S>
Backward<S> backward(const Tensor<S>& dq_out, const Tensor<S>& dk_out, const Tensor<S>& q, const Tensor<S>& k,
                     const Tensor<S>& q_gain, const Tensor<S>& k_gain, const Forward<S>& saved);

}  // namespace assay::reference::qk_norm
