#include "impl/ops/attention/attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/attention.hpp"
#include "spec/ops/latent_attention.hpp"

namespace assay::impl::attention {

namespace {
void check_mask(const spec::attention::Shape& shape, const Mask& mask) {
  const Documents& documents = mask.documents;
  if (!documents.defined()) return spec::attention::check(shape, {.window = mask.window});
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(documents.numbers.numel()));
  // The loader has checked the order of documents that are on a device.
  if (documents.numbers.is_cpu())
    std::copy_n(documents.numbers.const_data_ptr<std::int32_t>(), documents.numbers.numel(), numbers.begin());
  spec::attention::check(shape, {numbers, mask.window});
}

Heads check(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
            const Form& form) {
  const Heads x(qkv, heads, kv_heads, form);
  using Sizes = std::vector<std::int64_t>;
  spec::attention::check_extents(
      "qkv", qkv.sizes().vec(),
      form.value_dim > 0 ? Sizes{x.B, x.T, x.columns()} : Sizes{x.B, x.T, heads + 2 * kv_heads, x.E});
  check_mask({.B = x.B, .T = x.T, .H = x.H, .K = x.K, .E = x.E, .W = x.W}, mask);
  return x;
}

void check_backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form) {
  const Heads x = check(qkv, heads, kv_heads, mask, form);
  spec::attention::check_extents("dy", dy.sizes().vec(), {x.B, x.T, x.H, x.W});
  check_contiguous("attention", {dy, qkv, saved.lse, mask.documents.numbers, mask.documents.offsets});
}
}  // namespace

Form form_of(const spec::ModelSpec& model, Backend backend) {
  if (!model.latent) return {.backend = backend};
  return {.value_dim = model.value_dim(),
          .score_factor = spec::latent_attention::score_factor(model.rope_scaling),
          .backend = backend};
}

Heads::Heads(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Form& form)
    : B(qkv.size(0)), T(qkv.size(1)), H(heads), K(kv_heads), E(qkv.size(-1)), W(E) {
  if (form.value_dim > 0) W = form.value_dim, E = (qkv.size(-1) - K * W) / (H + K);
  scale = form.score_factor / std::sqrt(static_cast<double>(E));
}

std::int64_t Mask::visible_pairs() const {
  Count pairs;
  const std::vector<std::int32_t>& offsets = documents.on_host;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    pairs += spec::attention::document_pairs(offsets[i] - offsets[i - 1], window);
  return pairs.to_int64();
}

Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form) {
  const metrics::OpScope timed(spec::time::StepOp::attention, spec::time::StepPass::forward);
  check(qkv, heads, kv_heads, mask, form);
  check_contiguous("attention", {qkv, mask.documents.numbers, mask.documents.offsets});
  if (qkv.is_cuda()) return cuda::forward(qkv, heads, kv_heads, mask, form);
  return form.backend == Backend::math ? aten::forward(qkv, heads, kv_heads, mask, form)
                                       : cpu::forward(qkv, heads, kv_heads, mask, form);
}

at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form) {
  const metrics::OpScope timed(spec::time::StepOp::attention, spec::time::StepPass::backward);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check_backward(dy, qkv, saved, heads, kv_heads, mask, form);
  if (qkv.is_cuda()) return cuda::backward(dy, qkv, saved, heads, kv_heads, mask, form);
  return saved.backend == Backend::math ? aten::backward(dy, qkv, saved, heads, kv_heads, mask, form)
                                        : cpu::backward(dy, qkv, saved, heads, kv_heads, mask, form);
}

at::Tensor backward_through_rope(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                                 std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                                 const rope::Table& table, const at::Tensor& positions) {
  if (qkv.is_cpu()) {
    at::Tensor dqkv = backward(dy, qkv, saved, heads, kv_heads, mask);
    rope::rotate(dqkv, heads + kv_heads, table, positions, /*inverse=*/true);
    return dqkv;
  }
  const metrics::OpScope timed(spec::time::StepOp::attention, spec::time::StepPass::backward);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check_backward(dy, qkv, saved, heads, kv_heads, mask, {});
  return cuda::backward_through_rope(dy, qkv, saved, heads, kv_heads, mask, table, positions);
}

namespace aten {

using metrics::FlopScope;
using spec::ExecutedPass;
using enum spec::FlopComponent;

namespace {
/// q, k and v by key/value head, the G = H/K query heads of a group one below the other: no copies of k and
/// v.
struct Split : Heads {
  at::Tensor q, k;  ///< [B, K, G*T, E], [B, K, T, E]
  at::Tensor v;     ///< [B, K, T, W]

  Split(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Form& form)
      : Heads(qkv, heads, kv_heads, form) {
    const at::Tensor wide = qkv.scalar_type() == at::kBFloat16 ? qkv.to(at::kFloat) : qkv;
    q = grouped(part(wide, 0, H, E));
    k = part(wide, key(0), K, E).transpose(1, 2);
    v = part(wide, value(0), K, W).transpose(1, 2);
  }
  /// The heads [B, T, heads, width] of q | k | v that begin with a token's entry `first`.
  at::Tensor part(const at::Tensor& qkv, std::int64_t first, std::int64_t heads, std::int64_t width) const {
    return qkv.view({B, T, columns()}).narrow(2, first, heads * width).unflatten(2, {heads, width});
  }
  at::Tensor grouped(const at::Tensor& x_BTHE) const {
    return x_BTHE.reshape({B, T, K, H / K, -1}).permute({0, 2, 3, 1, 4}).reshape({B, K, H / K * T, -1});
  }
  at::Tensor by_token(const at::Tensor& x) const {
    return x.view({B, K, H / K, T, -1}).permute({0, 3, 1, 2, 4}).reshape({B, T, H, -1}).contiguous();
  }
  /// Scaled scores [B, K, G*T, T], -inf where a token must not look.
  at::Tensor scores(const Mask& mask) const {
    const at::TensorOptions flags = q.options().dtype(at::kBool);
    at::Tensor hidden = at::ones({T, T}, flags).triu_(1).view({1, 1, 1, T, T});
    if (mask.window > 0)
      hidden.logical_or_(at::ones({T, T}, flags).tril_(-mask.window).view({1, 1, 1, T, T}));
    if (const at::Tensor& numbers = mask.documents.numbers; numbers.defined())
      hidden = hidden.logical_or(numbers.view({B, 1, 1, T, 1}).ne(numbers.view({B, 1, 1, 1, T})));
    at::Tensor s = at::matmul(q, k.transpose(2, 3)).mul_(scale);
    s.view({B, K, H / K, T, T}).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
    return s;
  }
};

at::Tensor recomputed_scores(const Split& split, const Mask& mask) {
  const FlopScope scope(attention_scores, ExecutedPass::recompute);
  return split.scores(mask);
}
}  // namespace

Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form) {
  const Split split(qkv, heads, kv_heads, form);
  FlopScope scope(attention_scores);
  const at::Tensor s = split.scores(mask), lse = at::logsumexp(s, {3}, true);
  scope.enter(attention_values);
  return {split.by_token(at::matmul((s - lse).exp_(), split.v)).to(qkv.scalar_type()),
          lse.view({split.B, heads, split.T}),
          Backend::math,
          {},
          {}};
}

at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form) {
  const Split split(qkv, heads, kv_heads, form);
  const at::Tensor upstream = split.grouped(dy.to(split.q.scalar_type()));
  const at::Tensor p = (recomputed_scores(split, mask) - saved.lse.view({split.B, kv_heads, -1, 1})).exp_();
  FlopScope scope(attention_values);
  const at::Tensor dv = at::matmul(p.transpose(2, 3), upstream);
  const at::Tensor dp = at::matmul(upstream, split.v.transpose(2, 3));
  const at::Tensor ds = (dp - (p * dp).sum(3, true)).mul_(p).mul_(split.scale);
  scope.enter(attention_scores);
  const at::Tensor dq = split.by_token(at::matmul(ds, split.k)), dk = at::matmul(ds.transpose(2, 3), split.q);
  at::Tensor dqkv = at::empty_like(qkv);
  split.part(dqkv, 0, split.H, split.E).copy_(dq);
  split.part(dqkv, split.key(0), split.K, split.E).copy_(dk.transpose(1, 2));
  split.part(dqkv, split.value(0), split.K, split.W).copy_(dv.transpose(1, 2));
  return dqkv;
}
}  // namespace aten

}  // namespace assay::impl::attention
