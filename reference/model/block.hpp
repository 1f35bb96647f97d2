#pragma once
#include "reference/model/batch.hpp"
#include "reference/model/experts.hpp"
#include "reference/model/parameters.hpp"
#include "reference/ops/attention.hpp"
#include "reference/ops/latent_attention.hpp"
#include "reference/ops/qk_norm.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/tensor.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/quantise/quantise.hpp"

namespace assay::reference::block {

using spec::quantise::Recipe;

/// Every value of a block that its backward pass reads, in the order they are computed.
template <class S>
struct Forward {
  Tensor<S> x;                               ///< [B, T, D] input
  rms_norm::Forward<S> input_norm;           ///< of x
  Tensor<S> q, k, v;                         ///< [B, T, H, E] and twice [B, T, K, E]: projections
  qk_norm::Forward<S> qk;                    ///< of q and k; empty without qk_norm
  Tensor<S> q_rotated, k_rotated;            ///< after qk_norm and rope
  attention::Forward<S> attention;           ///< of q_rotated, k_rotated and v
  latent_attention::Forward<S> latent;       ///< in place of q .. attention where the model has it
  Tensor<S> middle;                          ///< [B, T, D] x + attention output
  rms_norm::Forward<S> post_attention_norm;  ///< of middle
  Tensor<S> gate, up, activated;             ///< [B, T, F]; empty in a sparse block
  experts::Forward<S> experts;               ///< of a sparse block
  Tensor<S> y;                               ///< [B, T, D] middle + feed-forward output
};

/// Pre-norm decoder block number `layer`, counted from 0.                        [spec/model/model.md]
/// Equation:  middle = x + o(attention(rope(qk_norm(q, k)), v)) with q, k, v projected from rms_norm(x), or
///            x + o(latent_attention(rms_norm(x)))
///            y = middle + down(swiglu(gate, up)) with gate, up projected from rms_norm(middle), or, in a
///            sparse block, middle + experts(rms_norm(middle))
///            q, k, v are parts of one linear, whose weight is [q; k; v]; so are gate and up. The four
///            linears are computed as `linears` says, routed experts as `of_experts`; router and shared
///            experts are not quantised.
/// Source:    Touvron et al., "LLaMA", 2023, section 2.2; qk_norm: "Qwen3 Technical Report", 2025, section 2
/// Shapes:    x [B, T, D] -> y [B, T, D]
/// Errors:    those of the ops, when shapes of parameters or batch do not fit the model
template <class S>
Forward<S> forward(const Tensor<S>& x, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, const Batch& batch, const linear::Precision& linears = {},
                   std::optional<double> capacity_factor = std::nullopt, Recipe of_experts = Recipe::none);

/// Gradient of `forward` for upstream dy: returns dx [B, T, D], and adds the gradient of every parameter of
/// the block. `auxiliary`: what the losses of load_balancing send into the router.
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Forward<S>& saved, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, const Batch& batch, Parameters<S>& gradients,
                   const linear::Precision& linears = {}, const experts::Upstream<S>& auxiliary = {},
                   Recipe of_experts = Recipe::none);

}  // namespace assay::reference::block
