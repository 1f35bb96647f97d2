#include "impl/model/tensor_ops.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "impl/ops/bias/bias.hpp"
#include "impl/ops/embedding/embedding.hpp"
#include "impl/ops/own_ids.hpp"
#include "impl/ops/qk_norm/qk_norm.hpp"
#include "impl/ops/quantise/fused.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "spec/memory/head.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::impl {

static_assert(spec::step::HeadOpSet<TensorOps>);

using spec::quantise::quantisation;
using spec::quantise::Recipe;
using spec::quantise::Role;

namespace {

/// Zero rows added at the end up to `rows`.
at::Tensor with_rows(const at::Tensor& matrix, std::int64_t rows) {
  at::Tensor out = at::empty({rows, matrix.size(1)}, matrix.options());
  out.narrow(0, 0, matrix.size(0)).copy_(matrix);
  out.narrow(0, matrix.size(0), rows - matrix.size(0)).zero_();
  return out;
}

quantise::Orientation orientation(TensorOps::ReadBy readers) {
  using ReadBy = TensorOps::ReadBy;
  return readers == ReadBy::both      ? quantise::Orientation::both
         : readers == ReadBy::forward ? quantise::Orientation::rows
                                      : quantise::Orientation::columns;
}

/// Forward's sums of scaled tensors; block scales are applied to partial sums, which no library sums fast.
bool fast_accumulation(Recipe recipe) { return recipe == Recipe::fp8_tensor; }

/// Quantising for the GEMMs of `site` is an op of its own in the op list.
TensorOps::Site quantise_at(TensorOps::Site site) {
  site.op = spec::time::StepOp::quantise;
  return site;
}

}  // namespace

spec::step::BlockParameters<TensorOps::Weight, at::Tensor> TensorOps::acquire(std::int64_t block) {
  block_ = block;
  const bool values = !context_.linear || context_.twins;  // kept twins are made of them
  const BlockWeights& acquired =
      context_.parameters->acquire(block, values ? Weights::values : Weights::operands);
  const Recipe recipe = context_.linear ? context_.linear->of(block, model().layers) : Recipe::none;
  auto weights = spec::step::convert(
      acquired,
      [&](const WeightMatrix& matrix) {
        return Weight{matrix, Recipe::none, {matrix.codes(), {}}};
      },
      [](const at::Tensor& vector) { return vector; });
  if (recipe == Recipe::none) return weights;
  const WeightTwins::Block* const twins =
      context_.twins ? &context_.twins->of(block, acquired.decoder, *context_.linear, context_.experts)
                     : nullptr;
  constexpr auto fields = spec::step::linear_fields<decltype(weights.decoder)>();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Weight& weight = weights.decoder.*fields[i];
    const bool of_experts = i >= spec::step::first_linear_of_experts;
    if (!weight.defined() || (of_experts && !context_.linear->experts)) continue;
    (of_experts ? weight.at_gemm : weight.recipe) = recipe;
    if (twins) weight.twins = (*twins)[i];
  }
  return weights;
}

spec::step::BlockParameters<TensorOps::Gradient, at::Tensor> TensorOps::gradients(std::int64_t block) {
  const BlockGradients to = context_.parameters->gradients(block);
  auto gradients = spec::step::convert(
      to.views,
      [&](const at::Tensor& matrix) {
        return Gradient{matrix, to.sum};
      },
      [](const at::Tensor& vector) { return vector; });
  gradients.decoder.experts_gate_up.sum = gradients.decoder.experts_down.sum = to.experts;
  return gradients;
}

/// Behind a collective that begins while forward runs again, what waited is still backward.
void TensorOps::run_deferred() {
  if (deferred_.empty()) return;
  const metrics::FlopScope pass(spec::ExecutedPass::backward);
  deferred_.run();
}

at::Tensor TensorOps::by_head(const at::Tensor& x) const {
  return x.view({context_.batch.B, context_.batch.T, -1, model().head_dim});
}

at::Tensor TensorOps::by_value_head(const at::Tensor& x) const {
  return x.view({context_.batch.B, context_.batch.T, model().heads, -1});
}

attention::Heads TensorOps::heads(const Tensor& qkv) const {
  const at::Tensor tokens =
      model().latent ? qkv.view({context_.batch.B, context_.batch.T, -1}) : by_head(qkv);
  return {tokens, model().heads, model().kv_heads, attention_form()};
}

at::Tensor TensorOps::by_token(const at::Tensor& x) const {
  return x.view({context_.batch.B * context_.batch.T, -1});
}

quantise::Twins TensorOps::quantised(const Site& site, const at::Tensor& x, Recipe recipe, Role role,
                                     ReadBy readers, Communicator* over) {
  const at::Tensor amax = amax_over(over, x);  // an observer may run the op more than once
  return run(quantise_at(site), {},
             [&] { return quantise::quantise(x, quantisation(recipe, role), orientation(readers), amax); });
}

TensorOps::Operand TensorOps::read_by(const Site& site, Tensor x, const Weight& weight, Role role,
                                      ReadBy readers) {
  if (weight.recipe == Recipe::none) return {std::move(x), {}};
  return {{}, quantised(site, x, weight.recipe, role, readers)};
}

TensorOps::Operand TensorOps::gradient_operand(const Site& site, const Tensor& x, const Weight& weight) {
  return read_by(site, x, weight, Role::gradient, ReadBy::both);
}

quantise::Quantised TensorOps::weight_twin(const Site& site, const Weight& weight, ReadBy reader) {
  quantise::Twins twins = weight.twins;
  if (!twins.rows.defined())
    twins = quantised(site, weight.matrix.values(), weight.recipe, Role::weight, reader,
                      weight.of_experts() ? context_.experts : nullptr);
  else if (reader == ReadBy::weight_gradient && !twins.columns.defined())
    twins.columns = run(quantise_at(site), {}, [&] { return quantise::transposed(twins.rows); });
  return reader == ReadBy::forward ? twins.rows : twins.columns;
}

TensorOps::Pending<at::Tensor> TensorOps::begin_all_gather(const Site&, Tensor x) {
  if (tensor_ranks() == 1) return {std::move(x), {}};
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.front() *= tensor_ranks();
  Tensor all = at::empty(shape, x.options());
  const auto ticket = context_.tensor.ranks->begin_all_gather(x.view({-1}), all.view({-1}));
  run_deferred();
  return {std::move(all), std::move(x), ticket, context_.tensor.ranks};
}

TensorOps::Pending<TensorOps::Operand> TensorOps::begin_all_gather(const Site& site, Operand x) {
  if (tensor_ranks() == 1) return {std::move(x), {}};
  TORCH_CHECK(!x.quantised(), "rows in FP8 are not gathered over tensor ranks");
  Pending<Tensor> pending = begin_all_gather(site, std::move(x.value));
  return {{std::move(pending.value), {}}, std::move(pending.source), pending.ticket, pending.ranks};
}

TensorOps::Pending<at::Tensor> TensorOps::begin_reduce_scatter(const Site&, Tensor part) {
  if (tensor_ranks() == 1) return {std::move(part), {}};
  std::vector<std::int64_t> shape = part.sizes().vec();
  shape.front() /= tensor_ranks();
  Tensor own = at::empty(shape, part.options());
  const auto ticket = context_.tensor.ranks->begin_reduce_scatter_sum(part.view({-1}), own.view({-1}));
  run_deferred();
  return {std::move(own), std::move(part), ticket, context_.tensor.ranks};
}

void TensorOps::add(const Site&, Tensor& sum, const Tensor& gradient) { sum.add_(gradient); }

at::Tensor TensorOps::own(const at::Tensor& ids) const {
  if (tensor_ranks() == 1) return ids;
  const spec::OwnVocabulary mine = context_.tensor.own();
  return own_ids(ids, mine.first, mine.count);
}

at::Tensor TensorOps::zeros_like(const Site&, const Tensor& x) { return at::zeros_like(x); }

at::Tensor TensorOps::embedding(const Site& site, const Weight& table) {
  return run(site, {}, [&] { return embedding::forward(table.matrix.values(), own(context_.batch.inputs)); });
}

void TensorOps::embedding_backward(const Site& site, const Tensor& dx, const Gradient& table) {
  run(site, {}, [&] { embedding::backward(dx, own(context_.batch.inputs), table.into); });
}

spec::step::Normed<TensorOps> TensorOps::rms_norm(const Site& site, const Tensor& x, const Vector& gain,
                                                  const Weight& weight, ReadBy readers) {
  if (weight.recipe == Recipe::none) {
    auto norm = run(site, {}, [&] { return rms_norm::forward(x, gain, norm_eps(site)); });
    return {{std::move(norm.y), {}}, std::move(norm.rstd)};
  }
  auto norm = run(site, {}, [&] {
    return quantise::norm(x, gain, norm_eps(site), quantisation(weight.recipe, Role::activation),
                          orientation(readers));
  });
  return {{{}, std::move(norm.y)}, std::move(norm.rstd)};
}

spec::step::Normed<TensorOps> TensorOps::rms_norm_of_sum(const Site& site, Tensor& sum,
                                                         const Tensor& residual, const Vector& gain,
                                                         const Weight& weight, ReadBy) {
  TORCH_CHECK(weight.recipe == Recipe::none, "the norm of a sum over tensor ranks is not quantised");
  auto norm = run(site, {sum}, [&] { return rms_norm::forward_of_sum(sum, residual, gain, norm_eps(site)); });
  return {{std::move(norm.y), {}}, std::move(norm.rstd)};
}

spec::step::NormGradient<TensorOps> TensorOps::rms_norm_backward(const Site& site, Tensor dy, const Tensor& x,
                                                                 const Vector& gain, const Tensor& rstd,
                                                                 Tensor dx, const VectorGradient& dgain,
                                                                 const Weight& weight, Operand kept,
                                                                 ForwardValue value) {
  const bool again = value == ForwardValue::read && !kept.defined(),
             in_dy = again && weight.recipe == Recipe::none;
  const bool alone = dx.use_count() == 1 && dx.storage().use_count() == 1;
  const Tensor sum = alone ? dx : at::empty_like(dx);
  run(site, {dy, sum}, [&] {
    rms_norm::backward(dy, x, gain, rstd, dx, sum, dgain,
                       in_dy ? impl::ForwardValue::again : impl::ForwardValue::kept);
  });
  if (!again) return {sum, std::move(kept)};
  if (in_dy) return {sum, {std::move(dy), {}}};
  dy = Tensor();
  return {sum, {{}, run(quantise_at(site), {}, [&] {
                  return quantise::norm_again(x, gain, rstd, quantisation(weight.recipe, Role::activation),
                                              quantise::Orientation::columns);
                })}};
}

at::Tensor TensorOps::linear(const Site& site, const Operand& x, const Weight& weight, const Vector& bias) {
  if (!x.quantised())
    return run(site, {}, [&] { return linear::forward(x.value, weight.matrix.values(), bias); });
  const quantise::Quantised twin = weight_twin(site, weight, ReadBy::forward);
  return run(site, {}, [&] {
    return linear::forward(x.twins.rows, twin, context_.compute, bias, fast_accumulation(weight.recipe));
  });
}

at::Tensor TensorOps::linear_residual(const Site& site, const Tensor& residual, const Operand& x,
                                      const Weight& weight) {
  if (!x.quantised())
    return run(site, {}, [&] { return linear::forward_residual(residual, x.value, weight.matrix.values()); });
  const quantise::Quantised twin = weight_twin(site, weight, ReadBy::forward);
  return run(site, {}, [&] {
    return linear::forward_residual(residual, x.twins.rows, twin, fast_accumulation(weight.recipe));
  });
}

at::Tensor TensorOps::linear_input_gradient(const Site& site, const Operand& dy, const Weight& weight) {
  if (!dy.quantised())
    return run(site, {}, [&] { return linear::backward_input(dy.value, weight.matrix.values()); });
  const quantise::Quantised twin = weight_twin(site, weight, ReadBy::weight_gradient);
  return run(site, {}, [&] { return linear::backward_input(dy.twins.rows, twin, context_.compute); });
}

void TensorOps::linear_weight_gradient(const Site& site, const Operand& dy, const Operand& x,
                                       const Gradient& dweight) {
  run(site, {}, [&] {
    if (x.quantised())
      linear::backward_weight(dy.twins.columns, x.twins.columns, dweight.into, dweight.sum);
    else
      linear::backward_weight(dy.value, x.value, dweight.into, dweight.sum);
  });
}

void TensorOps::bias_gradient(const Site& site, const Tensor& dy, const VectorGradient& dbias) {
  run(site, {}, [&] { bias::backward(dy, dbias); });
}

spec::step::QkNormed<TensorOps> TensorOps::qk_norm_rope(const Site& site, const Tensor& qkv,
                                                        const Vector& q_gain, const Vector& k_gain) {
  const auto& m = model();
  auto normed = run(site, {}, [&] {
    return qk_norm::forward_rope(by_head(qkv), q_gain, k_gain, m.heads, m.kv_heads, m.norm_eps,
                                 context_.rope_table, context_.batch.positions);
  });
  return {by_token(normed.qkv), std::move(normed.rstd)};
}

void TensorOps::qk_norm_rope_backward(const Site& site, Tensor& dqkv, const Tensor& qkv, const Vector& q_gain,
                                      const Vector& k_gain, const Tensor& rstd, const VectorGradient& dq_gain,
                                      const VectorGradient& dk_gain) {
  const auto& m = model();
  run(site, {dqkv}, [&] {
    qk_norm::backward_rope(by_head(dqkv), by_head(qkv), q_gain, k_gain, rstd, m.heads, m.kv_heads, dq_gain,
                           dk_gain, context_.rope_table, context_.batch.positions);
  });
}

void TensorOps::rope(const Site& site, Tensor& qkv) {
  run(site, {qkv}, [&] {
    rope::rotate(by_head(qkv), model().heads + model().kv_heads, context_.rope_table,
                 context_.batch.positions,
                 /*inverse=*/false);
  });
}

TensorOps::Attention TensorOps::attention(const Site& site, const Heads& heads) {
  return run(site, {}, [&] {
    if (context_.cache) return Attention{context_.cache->attend(block_, heads)};
    return Attention{attention::forward(heads, mask(), context_.attention)};
  });
}

TensorOps::Operand TensorOps::attention_operand(const Site& site, const Attention& attention,
                                                const Weight& weight, ReadBy readers) {
  return read_by(site, by_token(attention.forward.y), weight, Role::activation, readers);
}

attention::Gradients TensorOps::attention_backward(const Site& site, Tensor dy, Heads heads,
                                                   Attention saved) {
  return run(site, {}, [&] { return attention::backward(by_value_head(dy), heads, saved.forward, mask()); });
}

at::Tensor TensorOps::together(const HeadGradients& gradients) { return by_token(gradients.together()); }

at::Tensor TensorOps::rope_backward(const Site& site, HeadGradients d) {
  const auto& positions = context_.batch.positions;
  if (!d.joined.defined())
    return run(site, {}, [&] {
      return by_token(rope::joined_backward(d.dq, d.dk, d.dv, context_.rope_table, positions));
    });
  run(site, {d.joined}, [&] {
    rope::rotate(d.joined, model().heads + model().kv_heads, context_.rope_table, positions,
                 /*inverse=*/true);
  });
  return by_token(d.joined);
}

TensorOps::Operand TensorOps::gate(const Site& site, const Tensor& gate_up, const Weight& down,
                                   ReadBy readers) {
  const auto activation = spec::swiglu::activation_of(model().mlp);
  if (down.recipe == Recipe::none)
    return {run(site, {}, [&] { return swiglu::forward(gate_up, activation); }), {}};
  return {{}, run(site, {}, [&] {
            return quantise::gate(gate_up, activation, quantisation(down.recipe, Role::activation),
                                  orientation(readers));
          })};
}

spec::step::GateGradient<TensorOps> TensorOps::gate_backward(const Site& site, Tensor d_gated, Tensor gate_up,
                                                             Operand kept, const Weight& gate_up_weight,
                                                             const Weight& down) {
  const auto activation = spec::swiglu::activation_of(model().mlp);
  const bool again = !kept.defined();
  if (down.recipe == Recipe::none) {
    Tensor d_gate_up = run(site, {d_gated, gate_up}, [&] {
      return swiglu::backward(d_gated, gate_up, activation,
                              again ? impl::ForwardValue::again : impl::ForwardValue::kept);
    });
    if (again) kept = {std::move(d_gated), {}};
    return {{std::move(d_gate_up), {}}, std::move(kept)};
  }
  auto gradient = run(site, {}, [&] {
    return quantise::gate_backward(
        d_gated, gate_up, activation, quantisation(gate_up_weight.recipe, Role::gradient),
        quantise::Orientation::both,
        again ? std::optional(quantisation(down.recipe, Role::activation)) : std::nullopt);
  });
  if (again) kept = {{}, {{}, std::move(gradient.gated)}};
  return {{{}, std::move(gradient.gate_up)}, std::move(kept)};
}

TensorOps::PaddedHead TensorOps::padded_head(const Weight& weight, const Gradient& gradient) {
  const std::int64_t V = weight.matrix.values().size(0),
                     rows = weight.matrix.values().is_cuda()
                                ? spec::memory::padded_vocabulary(V, weight.matrix.values().element_size())
                                : V;
  if (rows == V) return {rows, weight, gradient};
  PaddedHead padded{rows, {with_rows(weight.matrix.values(), rows)}, {}};
  if (gradient.into.defined())
    padded.gradient = {at::empty({rows, weight.matrix.values().size(1)}, gradient.into.options()),
                       linear::GradientSum::starts};
  return padded;
}

void TensorOps::add_padded_gradient(const PaddedHead& padded, const Gradient& gradient) {
  const std::int64_t V = gradient.into.size(0);
  if (padded.rows == V) return;
  const at::Tensor real = padded.gradient.into.narrow(0, 0, V);
  if (gradient.sum == linear::GradientSum::starts)
    gradient.into.copy_(real);
  else
    gradient.into.add_(real);
}

std::vector<spec::step::Chunk> TensorOps::chunks(std::int64_t N, std::int64_t most) const {
  std::vector<Chunk> chunks;
  for (std::int64_t begin = 0; begin < N; begin += most)
    chunks.push_back({.begin = begin, .count = std::min(most, N - begin), .times = 1, .first = begin == 0});
  return chunks;
}

TensorOps::Operand TensorOps::rows(const Operand& x, const Chunk& chunk) {
  return {x.value.narrow(0, chunk.begin, chunk.count), {}};
}

at::Tensor TensorOps::empty_like(const Site&, const Operand& x) { return at::empty_like(x.value); }

void TensorOps::copy_rows(Tensor& into, const Chunk& chunk, const Tensor& part) {
  into.narrow(0, chunk.begin, chunk.count).copy_(part);
}

at::Tensor TensorOps::of_vocabulary(const at::Tensor& logits) const {
  return logits.narrow(1, 0, tensor_ranks() == 1 ? model().vocab : context_.tensor.own().count);
}

cross_entropy::Partial TensorOps::loss_sums(const at::Tensor& logits, const at::Tensor& targets) {
  cross_entropy::Partial sums = cross_entropy::partial(logits, targets);
  if (tensor_ranks() == 1) return sums;
  Communicator& ranks = *context_.tensor.ranks;
  const at::Tensor top = sums.top.clone();
  ranks.all_reduce_max(top);
  cross_entropy::rescale(sums, top);
  ranks.all_reduce_sum(sums.sums);
  return sums;
}

/// The logits of rows that were added to the head are 0 and stay so as gradients: the loss sees the
/// vocabulary alone.
TensorOps::ChunkLoss TensorOps::cross_entropy(const Site& site, Tensor& logits, const Chunk& chunk) {
  const at::Tensor targets = own(context_.batch.targets.narrow(0, chunk.begin, chunk.count)),
                   columns = of_vocabulary(logits);
  const bool by_source = context_.batch.sources.defined();
  at::Tensor of_target;  // which the gradient is written over
  auto loss = run(site, {logits}, [&] {
    if (tensor_ranks() == 1) {
      if (by_source) of_target = columns.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
      return cross_entropy::forward_backward(columns, targets, normalizer_, z_);
    }
    const cross_entropy::Partial sums = loss_sums(columns, targets);
    cross_entropy::Forward out = cross_entropy::combine(sums, targets, normalizer_, z_);
    cross_entropy::backward(columns, targets, out.lse, normalizer_, z_);
    if (by_source) of_target = sums.of_target;
    return out;
  });
  if (by_source) keep_row_losses(chunk, targets, of_target, loss.lse);
  loss_.cross_entropy = chunk.first ? loss.loss : loss_.cross_entropy + loss.loss;
  loss_.z_loss = chunk.first ? loss.z_loss : loss_.z_loss + loss.z_loss;
  return {std::move(loss.lse)};
}

void TensorOps::keep_row_losses(const Chunk& chunk, const at::Tensor& targets, const at::Tensor& of_target,
                                const at::Tensor& lse) {
  if (chunk.first)
    loss_.of_rows = at::empty({context_.batch.targets.size(0)}, lse.options().dtype(at::kDouble));
  loss_.of_rows.narrow(0, chunk.begin, chunk.count).copy_(cross_entropy::row_losses(lse, of_target, targets));
}

void TensorOps::token_losses(const Site& site, const Tensor& logits, const Chunk& chunk, Tensor& losses) {
  const at::Tensor targets = own(context_.batch.targets.narrow(0, chunk.begin, chunk.count));
  if (chunk.first) losses = at::empty({context_.batch.targets.size(0)}, logits.options().dtype(at::kDouble));
  losses.narrow(0, chunk.begin, chunk.count).copy_(run(site, {}, [&] {
    const cross_entropy::Partial sums = loss_sums(of_vocabulary(logits), targets);
    return cross_entropy::row_losses(cross_entropy::combine(sums, targets, 1, 0).lse, sums.of_target,
                                     targets);
  }));
}

}  // namespace assay::impl
