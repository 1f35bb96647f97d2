#include "impl/model/decoder_block.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/qk_norm.hpp"
#include "impl/ops/rms_norm.hpp"
#include "impl/ops/swiglu.hpp"

namespace assay::impl::decoder_block {

using metrics::FlopScope;
using spec::ExecutedPass;
using spec::FlopComponent;
using spec::Recompute;

namespace {
at::Tensor attention_forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                             const rope::Table& rope_table, const TokenBatch& batch, Recompute recompute,
                             BlockActivations& saved) {
  FlopScope scope(FlopComponent::qkv);
  const std::int64_t all_heads = model.heads + 2 * model.kv_heads;
  auto norm = rms_norm::forward(x, weights.norm_attention, model.norm_eps);
  at::Tensor qkv = linear::forward(norm.y, weights.qkv).view({batch.B, batch.T, all_heads, model.head_dim});
  saved.x = x;
  saved.rstd = norm.rstd;
  if (recompute == Recompute::none) saved.normed = norm.y;
  norm.y.reset();
  if (model.qk_norm) {
    auto normed =
        qk_norm::forward(qkv, weights.q_norm, weights.k_norm, model.heads, model.kv_heads, model.norm_eps);
    saved.qkv_raw = std::exchange(qkv, normed.qkv);
    saved.qk_rstd = normed.rstd;
  }
  rope::rotate(qkv, model.heads + model.kv_heads, rope_table, batch.positions, /*inverse=*/false);
  saved.qkv = qkv;
  saved.attention = attention::forward(qkv, model.heads, model.kv_heads, batch.documents);
  scope.enter(FlopComponent::attention_output);
  return linear::forward_residual(x, saved.attention.y.view({x.size(0), -1}), weights.output);
}

void gate_up_forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                     Recompute recompute, BlockActivations& saved) {
  const FlopScope scope(FlopComponent::gate_up);
  const auto norm = rms_norm::forward(x, weights.norm_mlp, model.norm_eps);
  saved.x_mid = x;
  saved.rstd_mid = norm.rstd;
  if (recompute == Recompute::none) saved.normed_mid = norm.y;
  saved.gate_up = linear::forward(norm.y, weights.gate_up);
}

at::Tensor down_forward(const at::Tensor& x, const DecoderViews& weights, Recompute recompute,
                        BlockActivations& saved) {
  const FlopScope scope(FlopComponent::down);
  const at::Tensor gated = swiglu::forward(saved.gate_up);
  if (recompute == Recompute::none) saved.gated = gated;
  return linear::forward_residual(x, gated, weights.down);
}

/// Forward from `saved.x` once more, as far as backward asks for it: the last product's value is the next
/// block's input.
void forward_again(const DecoderViews& weights, const spec::ModelSpec& model, const rope::Table& rope_table,
                   const TokenBatch& batch, BlockActivations& saved) {
  const FlopScope again(ExecutedPass::recompute);
  const at::Tensor x_mid = attention_forward(at::Tensor(saved.x), weights, model, rope_table, batch,
                                             Recompute::norms_swiglu, saved);
  gate_up_forward(x_mid, weights, model, Recompute::norms_swiglu, saved);
}

ForwardValue state_of(const at::Tensor& value) {
  return value.defined() ? ForwardValue::kept : ForwardValue::again;
}

/// `upstream` holds a forward value that backward gave again, or its gradient where the value was `kept`:
/// then the kept one takes its place.
void take_kept(at::Tensor& upstream, at::Tensor& kept) {
  if (kept.defined()) upstream = std::exchange(kept, {});
}

/// dx holds the gradient of the block's output and, on return, that of x_mid: the residual's plus the
/// branch's.
void mlp_backward(at::Tensor& dx, const DecoderViews& weights, const DecoderGradients& gradients,
                  BlockActivations& saved) {
  FlopScope scope(FlopComponent::down);
  at::Tensor gated = linear::backward_input(dx, weights.down);  // swiglu's gradient, and then its value
  const at::Tensor d_gate_up =
      swiglu::backward(gated, std::exchange(saved.gate_up, {}), state_of(saved.gated));
  take_kept(gated, saved.gated);
  linear::backward_weight(dx, gated, gradients.views.down, gradients.products);
  gated.reset();
  scope.enter(FlopComponent::gate_up);
  at::Tensor normed = linear::backward_input(d_gate_up, weights.gate_up);  // likewise
  rms_norm::backward(normed, saved.x_mid, weights.norm_mlp, saved.rstd_mid, dx, gradients.views.norm_mlp,
                     state_of(saved.normed_mid));
  saved.x_mid.reset();
  take_kept(normed, saved.normed_mid);
  linear::backward_weight(d_gate_up, normed, gradients.views.gate_up, gradients.products);
}

/// The gradient of qkv before rope.
at::Tensor attention_gradient(const at::Tensor& dx, const DecoderViews& weights,
                              const DecoderGradients& gradients, const spec::ModelSpec& model,
                              const rope::Table& rope_table, const TokenBatch& batch,
                              BlockActivations& saved) {
  const FlopScope scope(FlopComponent::attention_output);
  if (!saved.attention.y.defined()) {
    const FlopScope again(ExecutedPass::recompute);
    saved.attention = attention::forward(saved.qkv, model.heads, model.kv_heads, batch.documents);
  }
  linear::backward_weight(dx, saved.attention.y.view({dx.size(0), -1}), gradients.views.output,
                          gradients.products);
  const at::Tensor dy = linear::backward_input(dx, weights.output).view_as(saved.attention.y);
  return attention::backward_through_rope(dy, std::exchange(saved.qkv, {}),
                                          std::exchange(saved.attention, {}), model.heads, model.kv_heads,
                                          batch.documents, rope_table, batch.positions);
}

void attention_backward(at::Tensor& dx, const DecoderViews& weights, const DecoderGradients& gradients,
                        const spec::ModelSpec& model, const rope::Table& rope_table, const TokenBatch& batch,
                        BlockActivations& saved) {
  at::Tensor dqkv = attention_gradient(dx, weights, gradients, model, rope_table, batch, saved);
  const FlopScope scope(FlopComponent::qkv);
  if (model.qk_norm) {
    qk_norm::backward(dqkv, saved.qkv_raw, weights.q_norm, weights.k_norm, saved.qk_rstd, model.heads,
                      model.kv_heads, gradients.views.q_norm, gradients.views.k_norm);
    saved.qkv_raw.reset();
  }
  dqkv = dqkv.view({dx.size(0), -1});
  at::Tensor normed = linear::backward_input(dqkv, weights.qkv);
  rms_norm::backward(normed, saved.x, weights.norm_attention, saved.rstd, dx, gradients.views.norm_attention,
                     state_of(saved.normed));
  take_kept(normed, saved.normed);
  linear::backward_weight(dqkv, normed, gradients.views.qkv, gradients.products);
}
}  // namespace

at::Tensor forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                   const rope::Table& rope_table, const TokenBatch& batch, Recompute recompute,
                   BlockActivations& saved) {
  const at::Tensor x_mid = attention_forward(x, weights, model, rope_table, batch, recompute, saved);
  if (recompute >= Recompute::attention) saved.attention = {};
  gate_up_forward(x_mid, weights, model, recompute, saved);
  at::Tensor out = down_forward(x_mid, weights, recompute, saved);
  if (recompute == Recompute::block) {
    saved = {};
    saved.x = x;
  }
  return out;
}

void backward(at::Tensor dx, const DecoderViews& weights, const DecoderGradients& gradients,
              const spec::ModelSpec& model, const rope::Table& rope_table, const TokenBatch& batch,
              BlockActivations saved) {
  if (!saved.gate_up.defined()) forward_again(weights, model, rope_table, batch, saved);
  mlp_backward(dx, weights, gradients, saved);
  attention_backward(dx, weights, gradients, model, rope_table, batch, saved);
}

}  // namespace assay::impl::decoder_block
