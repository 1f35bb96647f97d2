#include "impl/model/decoder_block.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/linear.hpp"
#include "impl/ops/qk_norm.hpp"
#include "impl/ops/rms_norm.hpp"
#include "impl/ops/swiglu.hpp"

namespace assay::impl::decoder_block {

using metrics::FlopScope;
using spec::FlopComponent;

namespace {
at::Tensor attention_forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                             const rope::Table& rope_table, const TokenBatch& batch,
                             BlockActivations& saved) {
  FlopScope scope(FlopComponent::qkv);
  const std::int64_t all_heads = model.heads + 2 * model.kv_heads;
  auto norm = rms_norm::forward(x, weights.norm_attention, model.norm_eps);
  at::Tensor qkv = linear::forward(norm.y, weights.qkv).view({batch.B, batch.T, all_heads, model.head_dim});
  if (model.qk_norm) {
    auto normed =
        qk_norm::forward(qkv, weights.q_norm, weights.k_norm, model.heads, model.kv_heads, model.norm_eps);
    saved.qkv_raw = std::exchange(qkv, normed.qkv);
    saved.qk_rstd = normed.rstd;
  }
  rope::rotate(qkv, model.heads + model.kv_heads, rope_table, batch.positions, /*inverse=*/false);
  saved.attention = attention::forward(qkv, model.heads, model.kv_heads, batch.documents);
  saved.x = x;
  saved.rstd = norm.rstd;
  saved.qkv = qkv;
  scope.enter(FlopComponent::attention_output);
  return linear::forward_residual(x, saved.attention.y.view({x.size(0), -1}), weights.output);
}

at::Tensor mlp_forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                       BlockActivations& saved) {
  auto norm = rms_norm::forward(x, weights.norm_mlp, model.norm_eps);
  saved.x_mid = x;
  saved.rstd_mid = norm.rstd;
  FlopScope scope(FlopComponent::gate_up);
  saved.gate_up = linear::forward(norm.y, weights.gate_up);
  const at::Tensor gated = swiglu::forward(saved.gate_up);
  scope.enter(FlopComponent::down);
  return linear::forward_residual(x, gated, weights.down);
}

/// dx holds the gradient of the block's output and, on return, that of x_mid: the residual's plus the
/// branch's.
void mlp_backward(at::Tensor& dx, const DecoderViews& weights, const DecoderViews& gradients,
                  BlockActivations& saved) {
  FlopScope scope(FlopComponent::down);
  at::Tensor gated = linear::backward_input(dx, weights.down);  // swiglu's gradient, and then its value again
  const at::Tensor d_gate_up = swiglu::backward(gated, std::exchange(saved.gate_up, {}));
  linear::backward_weight(dx, gated, gradients.down);
  gated.reset();
  scope.enter(FlopComponent::gate_up);
  const at::Tensor normed = linear::backward_input(d_gate_up, weights.gate_up);  // likewise
  rms_norm::backward(normed, saved.x_mid, weights.norm_mlp, saved.rstd_mid, dx, gradients.norm_mlp);
  saved.x_mid.reset();
  linear::backward_weight(d_gate_up, normed, gradients.gate_up);
}

void attention_backward(at::Tensor& dx, const DecoderViews& weights, const DecoderViews& gradients,
                        const spec::ModelSpec& model, const rope::Table& rope_table, const TokenBatch& batch,
                        BlockActivations& saved) {
  FlopScope scope(FlopComponent::attention_output);
  linear::backward_weight(dx, saved.attention.y.view({dx.size(0), -1}), gradients.output);
  const at::Tensor dy = linear::backward_input(dx, weights.output).view_as(saved.attention.y);
  at::Tensor dqkv =
      attention::backward_through_rope(dy, saved.qkv, saved.attention, model.heads, model.kv_heads,
                                       batch.documents, rope_table, batch.positions);
  saved.attention = {};
  saved.qkv.reset();
  if (model.qk_norm) {
    qk_norm::backward(dqkv, saved.qkv_raw, weights.q_norm, weights.k_norm, saved.qk_rstd, model.heads,
                      model.kv_heads, gradients.q_norm, gradients.k_norm);
  }
  dqkv = dqkv.view({dx.size(0), -1});
  scope.enter(FlopComponent::qkv);
  const at::Tensor normed = linear::backward_input(dqkv, weights.qkv);
  rms_norm::backward(normed, saved.x, weights.norm_attention, saved.rstd, dx, gradients.norm_attention);
  linear::backward_weight(dqkv, normed, gradients.qkv);
}
}  // namespace

at::Tensor forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                   const rope::Table& rope_table, const TokenBatch& batch, BlockActivations& saved) {
  const at::Tensor x_mid = attention_forward(x, weights, model, rope_table, batch, saved);
  return mlp_forward(x_mid, weights, model, saved);
}

void backward(at::Tensor dx, const DecoderViews& weights, const DecoderViews& gradients,
              const spec::ModelSpec& model, const rope::Table& rope_table, const TokenBatch& batch,
              BlockActivations saved) {
  mlp_backward(dx, weights, gradients, saved);
  attention_backward(dx, weights, gradients, model, rope_table, batch, saved);
}

}  // namespace assay::impl::decoder_block
