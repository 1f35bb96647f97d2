#include "reference/model/block.hpp"

#include "reference/counted.hpp"
#include "reference/matrices.hpp"
#include "reference/ops/bias.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rope.hpp"
#include "reference/ops/swiglu.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::reference::block {

namespace {

std::string prefix(Index layer) { return "model.layers." + std::to_string(layer) + "."; }

template <class S>
Tensor<S> sum(const Tensor<S>& a, const Tensor<S>& b) {
  Tensor<S> out = a;
  out.flat() += b.flat();
  return out;
}

/// The parameters of one block, by their names within it.
template <class S>
class Weights {
 public:
  Weights(const Parameters<S>& parameters, Index layer) : parameters_(parameters), prefix_(prefix(layer)) {}
  const Tensor<S>& operator()(const std::string& name) const {
    return parameters_.at(prefix_ + name + ".weight");
  }
  const Tensor<S>& bias(const std::string& name) const { return parameters_.at(prefix_ + name + ".bias"); }

 private:
  const Parameters<S>& parameters_;
  std::string prefix_;
};

/// The same for their gradients.
template <class S>
class Gradients {
 public:
  Gradients(Parameters<S>& gradients, Index layer) : gradients_(gradients), prefix_(prefix(layer)) {}
  void add(const std::string& name, const Tensor<S>& gradient) {
    add_gradient(gradients_, prefix_ + name + ".weight", gradient);
  }
  void add_bias(const std::string& name, const Tensor<S>& gradient) {
    add_gradient(gradients_, prefix_ + name + ".bias", gradient);
  }

 private:
  Parameters<S>& gradients_;
  std::string prefix_;
};

template <class S>
Tensor<S> qkv_weight(const Weights<S>& weight) {
  return stacked<S>({weight("self_attn.q_proj"), weight("self_attn.k_proj"), weight("self_attn.v_proj")});
}

template <class S>
Tensor<S> gate_up_weight(const Weights<S>& weight) {
  return stacked<S>({weight("mlp.gate_proj"), weight("mlp.up_proj")});
}

/// Heads [first, first + count) of the projections q, k and v [B, T, all heads * E], with the bias of `name`
/// where the model has one.
template <class S>
Tensor<S> heads_of(const Tensor<S>& qkv, Index first, Index count, const Weights<S>& weight,
                   const std::string& name, const spec::ModelSpec& model) {
  const Index E = model.head_dim;
  const Tensor<S> part = columns(qkv, first * E, count * E);
  return (model.qkv_bias ? bias::forward(part, weight.bias(name)) : part)
      .reshaped({qkv.extent(0), qkv.extent(1), count, E});
}

/// dy through down, the gated activation, gate and up.
template <class S>
Tensor<S> mlp_backward(const Tensor<S>& dy, const Forward<S>& saved, const Weights<S>& weight,
                       const spec::ModelSpec& model, Gradients<S>& gradients,
                       const linear::Precision& linears) {
  const Index F = model.ffn;
  const auto down = linear::backward(dy, saved.activated, weight("mlp.down_proj"), linears);
  const auto swiglu = swiglu::backward(down.dx, saved.gate, saved.up, spec::swiglu::activation_of(model.mlp));
  const auto gate_up = linear::backward(beside<S>({swiglu.dgate, swiglu.dup}, 2), saved.post_attention_norm.y,
                                        gate_up_weight(weight), linears);
  gradients.add("mlp.down_proj", down.dweight);
  gradients.add("mlp.gate_proj", rows(gate_up.dweight, 0, F));
  gradients.add("mlp.up_proj", rows(gate_up.dweight, F, F));
  return gate_up.dx;
}

/// Gradients of the projections q and k, and of qk_norm's gains, from those of the rotated q and k.
template <class S>
std::pair<Tensor<S>, Tensor<S>> rotated_backward(const attention::Backward<S>& d, const Forward<S>& saved,
                                                 const Weights<S>& weight, const spec::ModelSpec& model,
                                                 const Batch& batch, Gradients<S>& gradients) {
  const auto frequencies = spec::rope::inverse_frequencies(model);
  const auto form = spec::rope::form_of(model);
  const auto dq = rope::backward(d.dq, batch.positions, frequencies, form);
  const auto dk = rope::backward(d.dk, batch.positions, frequencies, form);
  if (!model.qk_norm) return {dq, dk};
  const auto norm = qk_norm::backward(dq, dk, saved.q, saved.k, weight("self_attn.q_norm"),
                                      weight("self_attn.k_norm"), saved.qk);
  gradients.add("self_attn.q_norm", norm.dq_gain);
  gradients.add("self_attn.k_norm", norm.dk_gain);
  return {norm.dq, norm.dk};
}

/// The attention's output [B, T, H, W]; fills q .. attention of `s`.
template <class S>
Tensor<S> grouped_attention(Forward<S>& s, const Weights<S>& weight, const spec::ModelSpec& model,
                            const Batch& batch, const linear::Precision& linears) {
  const Index H = model.heads, K = model.kv_heads;
  const Tensor<S> qkv = linear::forward(s.input_norm.y, qkv_weight(weight), linears);
  s.q = heads_of(qkv, 0, H, weight, "self_attn.q_proj", model);
  s.k = heads_of(qkv, H, K, weight, "self_attn.k_proj", model);
  s.v = heads_of(qkv, H + K, K, weight, "self_attn.v_proj", model);
  if (model.qk_norm)
    s.qk = qk_norm::forward(s.q, s.k, weight("self_attn.q_norm"), weight("self_attn.k_norm"), model.norm_eps);
  const auto frequencies = spec::rope::inverse_frequencies(model);
  const auto form = spec::rope::form_of(model);
  s.q_rotated = rope::forward(model.qk_norm ? s.qk.q : s.q, batch.positions, frequencies, form);
  s.k_rotated = rope::forward(model.qk_norm ? s.qk.k : s.k, batch.positions, frequencies, form);
  s.attention = attention::forward(s.q_rotated, s.k_rotated, s.v, {batch.documents, model.window});
  return s.attention.y;
}

/// Gradient of `grouped_attention` for upstream dy with respect to the block's normed input.
template <class S>
Tensor<S> grouped_attention_backward(const Tensor<S>& dy, const Forward<S>& saved, const Weights<S>& weight,
                                     const spec::ModelSpec& model, const Batch& batch,
                                     Gradients<S>& gradients, const linear::Precision& linears) {
  const Index B = batch.B, T = batch.T, H = model.heads, K = model.kv_heads, E = model.head_dim;
  const auto d = attention::backward(dy, saved.q_rotated, saved.k_rotated, saved.v, saved.attention,
                                     {batch.documents, model.window});
  const auto [dq, dk] = rotated_backward(d, saved, weight, model, batch, gradients);

  const auto qkv =
      linear::backward(beside<S>({dq, dk, d.dv}, 2), saved.input_norm.y, qkv_weight(weight), linears);
  gradients.add("self_attn.q_proj", rows(qkv.dweight, 0, H * E));
  gradients.add("self_attn.k_proj", rows(qkv.dweight, H * E, K * E));
  gradients.add("self_attn.v_proj", rows(qkv.dweight, (H + K) * E, K * E));
  if (model.qkv_bias) {
    gradients.add_bias("self_attn.q_proj", bias::backward(dq.reshaped({B, T, H * E})));
    gradients.add_bias("self_attn.k_proj", bias::backward(dk.reshaped({B, T, K * E})));
    gradients.add_bias("self_attn.v_proj", bias::backward(d.dv.reshaped({B, T, K * E})));
  }
  return qkv.dx;
}

/// The parameters of latent attention, and where their gradients go.
template <class S>
std::vector<std::pair<std::string, Tensor<S> latent_attention::Weights<S>::*>> latent_names(
    const spec::ModelSpec& model) {
  using W = latent_attention::Weights<S>;
  std::vector<std::pair<std::string, Tensor<S> W::*>> names{
      {"self_attn.kv_a_proj_with_mqa", &W::key_value_down},
      {"self_attn.kv_a_layernorm", &W::key_value_gain},
      {"self_attn.kv_b_proj", &W::key_value_up}};
  if (model.latent->query_rank == 0) {
    names.emplace_back("self_attn.q_proj", &W::query_up);
  } else {
    names.emplace_back("self_attn.q_a_proj", &W::query_down);
    names.emplace_back("self_attn.q_a_layernorm", &W::query_gain);
    names.emplace_back("self_attn.q_b_proj", &W::query_up);
  }
  return names;
}

template <class S>
latent_attention::Weights<S> latent_weights(const Weights<S>& weight, const spec::ModelSpec& model) {
  latent_attention::Weights<S> weights;
  for (const auto& [name, member] : latent_names<S>(model)) weights.*member = weight(name);
  return weights;
}

latent_attention::Setting latent_setting(const spec::ModelSpec& model, const Batch& batch,
                                         const linear::Precision& linears) {
  return {.eps = model.latent->norm_eps,
          .positions = batch.positions,
          .inverse_frequencies = spec::rope::inverse_frequencies(model),
          .form = spec::rope::form_of(model),
          .mask = {batch.documents, model.window},
          .score_factor = spec::latent_attention::score_factor(model.rope_scaling),
          .precision = linears};
}

/// As `grouped_attention_backward`, of latent attention.
template <class S>
Tensor<S> latent_attention_backward(const Tensor<S>& dy, const Forward<S>& saved, const Weights<S>& weight,
                                    const spec::ModelSpec& model, const Batch& batch, Gradients<S>& gradients,
                                    const linear::Precision& linears) {
  const auto d = latent_attention::backward(
      dy, saved.input_norm.y, latent_weights(weight, model), saved.latent,
      spec::latent_attention::shape_of(model, batch.B, batch.T), latent_setting(model, batch, linears));
  for (const auto& [name, member] : latent_names<S>(model)) gradients.add(name, d.dweights.*member);
  return d.dx;
}

/// dmiddle through the output projection, the attention and the norm before it.
template <class S>
Tensor<S> attention_backward(const Tensor<S>& dmiddle, const Forward<S>& saved, const Weights<S>& weight,
                             const spec::ModelSpec& model, const Batch& batch, Gradients<S>& gradients,
                             const linear::Precision& linears) {
  const Tensor<S>& y = model.latent ? saved.latent.attention.y : saved.attention.y;
  const auto output =
      linear::backward(dmiddle, y.reshaped({batch.B, batch.T, model.heads * model.value_dim()}),
                       weight("self_attn.o_proj"), linears);
  const Tensor<S> dy = output.dx.reshaped(y.shape());
  const Tensor<S> dx = model.latent
                           ? latent_attention_backward(dy, saved, weight, model, batch, gradients, linears)
                           : grouped_attention_backward(dy, saved, weight, model, batch, gradients, linears);
  const auto norm = rms_norm::backward(dx, saved.x, weight("input_layernorm"), saved.input_norm.rstd);
  gradients.add("self_attn.o_proj", output.dweight);
  gradients.add("input_layernorm", norm.dgain);
  return norm.dx;
}

}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& x, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, const Batch& batch, const linear::Precision& linears,
                   std::optional<double> capacity_factor, Recipe of_experts) {
  const Weights<S> weight(parameters, layer);

  Forward<S> s;
  s.x = x;
  s.input_norm = rms_norm::forward(x, weight("input_layernorm"), model.norm_eps);
  if (model.latent)
    s.latent = latent_attention::forward(s.input_norm.y, latent_weights(weight, model),
                                         spec::latent_attention::shape_of(model, batch.B, batch.T),
                                         latent_setting(model, batch, linears));
  const Tensor<S> y =
      model.latent ? s.latent.attention.y : grouped_attention(s, weight, model, batch, linears);
  s.middle = sum(x, linear::forward(y.reshaped({batch.B, batch.T, model.heads * model.value_dim()}),
                                    weight("self_attn.o_proj"), linears));

  s.post_attention_norm = rms_norm::forward(s.middle, weight("post_attention_layernorm"), model.norm_eps);
  if (model.sparse(layer)) {
    s.experts =
        experts::forward(s.post_attention_norm.y, parameters, layer, model, capacity_factor, of_experts);
    s.y = sum(s.middle, s.experts.y);
    return s;
  }
  const Tensor<S> gate_up = linear::forward(s.post_attention_norm.y, gate_up_weight(weight), linears);
  s.gate = columns(gate_up, 0, model.ffn);
  s.up = columns(gate_up, model.ffn, model.ffn);
  s.activated = swiglu::forward(s.gate, s.up, spec::swiglu::activation_of(model.mlp));
  s.y = sum(s.middle, linear::forward(s.activated, weight("mlp.down_proj"), linears));
  return s;
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Forward<S>& saved, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, const Batch& batch, Parameters<S>& gradients,
                   const linear::Precision& linears, const experts::Upstream<S>& auxiliary,
                   Recipe of_experts) {
  const Weights<S> weight(parameters, layer);
  Gradients<S> of_block(gradients, layer);
  const Tensor<S> dnormed = model.sparse(layer)
                                ? experts::backward(dy, auxiliary, saved.experts, saved.post_attention_norm.y,
                                                    parameters, layer, model, gradients, of_experts)
                                : mlp_backward(dy, saved, weight, model, of_block, linears);
  const auto norm = rms_norm::backward(dnormed, saved.middle, weight("post_attention_layernorm"),
                                       saved.post_attention_norm.rstd);
  of_block.add("post_attention_layernorm", norm.dgain);
  const Tensor<S> dmiddle = sum(dy, norm.dx);
  return sum(dmiddle, attention_backward(dmiddle, saved, weight, model, batch, of_block, linears));
}

template Forward<double> forward(const Tensor<double>&, const Parameters<double>&, Index,
                                 const spec::ModelSpec&, const Batch&, const linear::Precision&,
                                 std::optional<double>, Recipe);
template Forward<Counted> forward(const Tensor<Counted>&, const Parameters<Counted>&, Index,
                                  const spec::ModelSpec&, const Batch&, const linear::Precision&,
                                  std::optional<double>, Recipe);
template Tensor<double> backward(const Tensor<double>&, const Forward<double>&, const Parameters<double>&,
                                 Index, const spec::ModelSpec&, const Batch&, Parameters<double>&,
                                 const linear::Precision&, const experts::Upstream<double>&, Recipe);
template Tensor<Counted> backward(const Tensor<Counted>&, const Forward<Counted>&, const Parameters<Counted>&,
                                  Index, const spec::ModelSpec&, const Batch&, Parameters<Counted>&,
                                  const linear::Precision&, const experts::Upstream<Counted>&, Recipe);

}  // namespace assay::reference::block
