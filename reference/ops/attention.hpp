#pragma once
#include "reference/tensor.hpp"
#include "spec/ops/attention/attention.hpp"

namespace assay::reference::attention {

template <class S>
struct Forward {
  Tensor<S> y;    ///< [B, T, H, W]
  Tensor<S> lse;  ///< [B, H, T], log of the sum of exponentials of each row's visible scores
};

/// Causal softmax attention with grouped queries, documents and a window. [spec/ops/attention/attention.md]
/// Equation:  score_ts = (factor/sqrt(E)) sum_e q_te k_se,  lse_t = log sum_s exp(score_ts),
///            y_tw = sum_s exp(score_ts - lse_t) v_sw, over the s that t sees (spec::attention::Mask); query
///            head h reads k, v of h / (H/K)
/// Source:    Vaswani et al., "Attention Is All You Need", NeurIPS 2017, eq. (1); Ainslie et al., "GQA",
/// EMNLP 2023 Shapes:    q [B, T, H, E], k [B, S, K, E], v [B, S, K, W], documents of B*S tokens or empty
/// (one document per sequence) Errors:    SpecError attention_c1 .. attention_c7 Numerics:  double, the row's
/// maximum subtracted, sums left to right
template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                   const spec::attention::Mask& mask, double factor = 1);

template <class S>
struct Backward {
  Tensor<S> dq;  ///< [B, T, H, E]
  Tensor<S> dk;  ///< [B, S, K, E]
  Tensor<S> dv;  ///< [B, S, K, W]
};

/// Gradient of `forward` for upstream dy, the probabilities recomputed from lse. `saved` is what forward
/// returned. Equation:  p_ts = exp(score_ts - lse_t),  delta_t = sum_w dy_tw y_tw,  dp_ts = sum_w dy_tw v_sw,
///            dscore_ts = p_ts (dp_ts - delta_t),  dq_te = (factor/sqrt(E)) sum_s dscore_ts k_se,
///            dk_se = (factor/sqrt(E)) sum_t dscore_ts q_te,  dv_sw = sum_t p_ts dy_tw, dk and dv over all
///            heads of a group
/// Source:    Dao, "FlashAttention-2", 2023, algorithm 2
/// Shapes:    q, dq [B, T, H, E], k, dk [B, S, K, E], v, dv [B, S, K, W], dy [B, T, H, W]
/// Errors:    as `forward`
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                     const Forward<S>& saved, const spec::attention::Mask& mask, double factor = 1);

}  // namespace assay::reference::attention
