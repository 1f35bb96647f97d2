#pragma once
#include <vector>

#include "reference/ops/attention.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/tensor.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/quantise/quantise.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::reference::latent_attention {

using spec::quantise::Recipe;

/// The parameters, or their gradients.
template <class S>
struct Weights {
  Tensor<S> query_down;      ///< [Cq, D]; empty when queries are not compressed
  Tensor<S> query_gain;      ///< [Cq]; empty likewise
  Tensor<S> query_up;        ///< [H E, Cq], or [H E, D]
  Tensor<S> key_value_down;  ///< [Ckv + R, D]
  Tensor<S> key_value_gain;  ///< [Ckv]
  Tensor<S> key_value_up;    ///< [H (E - R + W), Ckv]: of each head E - R rows of keys, then W of values
};

/// What is not learned.
struct Setting {
  double eps = 1e-6;                        ///< of the two norms
  Ids positions;                            ///< B*T
  std::vector<double> inverse_frequencies;  ///< R/2
  spec::rope::Form form = {};
  spec::attention::Mask mask = {};
  double score_factor = 1;           ///< spec::latent_attention::score_factor
  linear::Precision precision = {};  ///< of the linears
};

template <class S>
struct Forward {
  Tensor<S> query_compressed;           ///< [B, T, Cq]; empty when queries are not compressed
  rms_norm::Forward<S> query_norm;      ///< of it
  Tensor<S> key_value_compressed;       ///< [B, T, Ckv]
  rms_norm::Forward<S> key_value_norm;  ///< of it
  Tensor<S> q, k;                       ///< [B, T, H, E], turned
  Tensor<S> v;                          ///< [B, T, H, W]
  attention::Forward<S> attention;      ///< of these; its y [B, T, H, W] is the op's
};

/// Multi-head latent attention without its output projection. [spec/ops/latent_attention/latent_attention.md]
/// Equation:  c_q = rms_norm(W_qa x), q = W_qb c_q (or W_q x);  [b | r] = W_kva x, c = rms_norm(b);
///            [k_h^c | v_h] = head h of W_kvb c;  the last R entries of q_h turned,  k_h = [k_h^c | rope(r)];
///            y = attention(q, k, v) with scores times score_factor / sqrt(E)
/// Source:    "DeepSeek-V2", arXiv:2405.04434, eq. (9) to (19)
/// Shapes:    x [B, T, D] -> y [B, T, H, W]; H, E, R, W, Cq, Ckv as `shape` says
/// Errors:    SpecError latent_attention_c1 .. c4, those of rope and attention
/// Numerics:  double, as the ops it is made of
template <class S>
Forward<S> forward(const Tensor<S>& x, const Weights<S>& weights, const spec::latent_attention::Shape& shape,
                   const Setting& setting);

template <class S>
struct Backward {
  Tensor<S> dx;         ///< [B, T, D]
  Weights<S> dweights;  ///< shapes of the weights
};

/// Gradient of `forward` for upstream dy [B, T, H, W]. `saved` is what it returned.
/// Equation:  that of each step; dr = rope_backward(sum_h of the last R entries of dk_h); dx is the sum of
/// those
///            by W_qa (or W_q) and W_kva
/// Errors:    as `forward`
template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Weights<S>& weights,
                     const Forward<S>& saved, const spec::latent_attention::Shape& shape,
                     const Setting& setting);

}  // namespace assay::reference::latent_attention
