#pragma once
#include "reference/tensor.hpp"

namespace assay::reference::qk_norm {

template <class S>
struct Forward {
  Tensor<S> q;       ///< [B, T, H, E], normalised
  Tensor<S> k;       ///< [B, T, K, E], normalised
  Tensor<S> q_rstd;  ///< [B*T*H]; across heads [B*T]
  Tensor<S> k_rstd;  ///< [B*T*K]; across heads [B*T]
};

/// RMS normalisation of every query and key head, or across heads.              [spec/ops/qk_norm/qk_norm.md]
/// Equation:  rms_norm of q with q_gain and of k with k_gain, over rows of a gain's entries
/// Source:    Yang et al., "Qwen3 Technical Report", 2025, section 2; across heads: Muennighoff et al.,
///            "OLMoE", arXiv:2409.02060, QK-Norm
/// Shapes:    q [B, T, H, E], k [B, T, K, E], q_gain, k_gain [E]; across heads [H*E], [K*E]
/// Errors:    SpecError qk_norm_c1 .. qk_norm_c4
template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& q_gain, const Tensor<S>& k_gain,
                   double eps);

template <class S>
struct Backward {
  Tensor<S> dq;       ///< [B, T, H, E]
  Tensor<S> dk;       ///< [B, T, K, E]
  Tensor<S> dq_gain;  ///< of q_gain, summed over the rows
  Tensor<S> dk_gain;  ///< of k_gain
};

/// Gradient of `forward` for upstream dq_out, dk_out. q and k are its inputs; `saved` is what it returned.
/// Shapes:    dq_out, q [B, T, H, E], dk_out, k [B, T, K, E], q_gain, k_gain as in forward
/// Errors:    SpecError qk_norm_c2 (q and k, or the upstreams, disagree in B, T or E)
template <class S>
Backward<S> backward(const Tensor<S>& dq_out, const Tensor<S>& dk_out, const Tensor<S>& q, const Tensor<S>& k,
                     const Tensor<S>& q_gain, const Tensor<S>& k_gain, const Forward<S>& saved);

}  // namespace assay::reference::qk_norm
