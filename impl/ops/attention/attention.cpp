#include "impl/ops/attention/attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"

namespace assay::impl::attention {

namespace {
void check(const Heads& x, const Mask& mask) {
  const spec::attention::Shape shape{.B = x.B, .T = x.T, .H = x.H, .K = x.K, .E = x.E, .W = x.W, .S = x.S};
  const Documents& documents = mask.documents;
  if (!documents.defined())
    return spec::attention::check(shape, {.window = mask.window, .first = mask.first});
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(documents.numbers.numel()));
  // The loader has checked the order of documents that are on a device.
  if (documents.numbers.is_cpu())
    std::copy_n(documents.numbers.const_data_ptr<std::int32_t>(), documents.numbers.numel(), numbers.begin());
  spec::attention::check(shape, {numbers, mask.window, mask.first});
}

void check_strides(const Heads& x, const Mask& mask) {
  for (const at::Tensor& each : {x.q, x.k, x.v})
    TORCH_CHECK(each.size(3) <= 1 || each.stride(3) == 1, "attention: the last extent is not contiguous");
  check_contiguous("attention", {x.joined, mask.documents.numbers, mask.documents.offsets});
}

/// How many keys some query sees. What computes attention is not given those behind them.
std::int64_t seen_keys(const Heads& x, const Mask& mask) { return std::min(mask.first + x.T, x.S); }

Heads with_keys(Heads x, std::int64_t seen) {
  x.k = x.k.narrow(1, 0, seen), x.v = x.v.narrow(1, 0, seen), x.S = seen;
  x.joined = at::Tensor();
  return x;
}

Mask with_keys(const Mask& mask, std::int64_t seen) {
  const at::Tensor& numbers = mask.documents.numbers;
  return {numbers.defined() ? Documents(numbers.narrow(1, 0, seen).contiguous()) : Documents(), mask.window,
          mask.first};
}

/// `part` [B, last, ...] with zeros behind it up to S.
at::Tensor with_unseen(const at::Tensor& part, std::int64_t S) {
  at::Tensor whole = at::zeros({part.size(0), S, part.size(2), part.size(3)}, part.options());
  whole.narrow(1, 0, part.size(1)).copy_(part);
  return whole;
}
}  // namespace

Form form_of(const spec::ModelSpec& model, Backend backend) {
  if (!model.latent) return {.backend = backend};
  return {.value_dim = model.value_dim(),
          .score_factor = spec::latent_attention::score_factor(model.rope_scaling),
          .backend = backend};
}

Heads::Heads(at::Tensor queries, at::Tensor keys, at::Tensor values, double score_factor)
    : q(std::move(queries)),
      k(std::move(keys)),
      v(std::move(values)),
      B(q.size(0)),
      T(q.size(1)),
      S(k.size(1)),
      H(q.size(2)),
      K(k.size(2)),
      E(q.size(3)),
      W(v.size(3)),
      scale(score_factor / std::sqrt(static_cast<double>(E))) {
  spec::attention::check_extents("k", k.sizes().vec(), {B, S, K, E});
  spec::attention::check_extents("v", v.sizes().vec(), {B, S, K, W});
}

namespace {
/// The three parts of a tensor like qkv, contiguous.
struct Parts {
  at::Tensor q, k, v;
  Parts(const at::Tensor& joined, std::int64_t H, std::int64_t K, std::int64_t E, std::int64_t W) {
    const std::int64_t B = joined.size(0), T = joined.size(1), token = (H + K) * E + K * W;
    const auto part = [&](std::int64_t first, std::int64_t heads, std::int64_t width) {  // one call of ATen
      return joined.as_strided({B, T, heads, width}, {T * token, token, width, 1},
                               joined.storage_offset() + first);
    };
    q = part(0, H, E), k = part(H * E, K, E), v = part((H + K) * E, K, W);
  }
};

Heads joined_heads(const at::Tensor& qkv, std::int64_t H, std::int64_t K, const Form& form) {
  using Sizes = std::vector<std::int64_t>;
  const std::int64_t W = form.value_dim, last = qkv.size(-1), E = W > 0 ? (last - K * W) / (H + K) : last,
                     B = qkv.size(0), T = qkv.size(1);
  spec::attention::check_extents("qkv", qkv.sizes().vec(),
                                 W > 0 ? Sizes{B, T, (H + K) * E + K * W} : Sizes{B, T, H + 2 * K, E});
  Parts parts(qkv, H, K, E, W > 0 ? W : E);
  Heads out(std::move(parts.q), std::move(parts.k), std::move(parts.v), form.score_factor);
  out.joined = qkv;
  return out;
}

}  // namespace

Gradients gradients_like(const Heads& x) {
  if (!x.joined.defined()) return {at::empty_like(x.q), at::empty_like(x.k), at::empty_like(x.v)};
  const at::Tensor joined = at::empty_like(x.joined);
  const Parts parts(joined, x.H, x.K, x.E, x.W);
  return {parts.q, parts.k, parts.v, joined};
}

Heads::Heads(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Form& form)
    : Heads(joined_heads(qkv, heads, kv_heads, form)) {}

at::Tensor Gradients::together() const {
  return joined.defined() ? joined.flatten(2) : at::cat({dq.flatten(2), dk.flatten(2), dv.flatten(2)}, 2);
}

std::int64_t Mask::visible_pairs() const {
  Count pairs;
  const std::vector<std::int32_t>& offsets = documents.on_host;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    pairs += spec::attention::document_pairs(offsets[i] - offsets[i - 1], window);
  return pairs.to_int64();
}

Forward forward(const Heads& x, const Mask& mask, Backend backend) {
  check(x, mask);
  if (const std::int64_t seen = seen_keys(x, mask); seen < x.S)
    return forward(with_keys(x, seen), with_keys(mask, seen), backend);
  const metrics::OpScope timed(spec::time::StepOp::attention, spec::time::StepPass::forward);
  check_strides(x, mask);
  if (x.q.is_cuda()) return cuda::forward(x, mask, backend);
  return backend == Backend::math ? aten::forward(x, mask) : cpu::forward(x, mask);
}

Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask) {
  check(x, mask);
  if (const std::int64_t seen = seen_keys(x, mask); seen < x.S) {
    Gradients of_seen = backward(dy, with_keys(x, seen), saved, with_keys(mask, seen));
    return {of_seen.dq, with_unseen(of_seen.dk, x.S), with_unseen(of_seen.dv, x.S)};
  }
  const metrics::OpScope timed(spec::time::StepOp::attention, spec::time::StepPass::backward);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  spec::attention::check_extents("dy", dy.sizes().vec(), {x.B, x.T, x.H, x.W});
  check_strides(x, mask);
  check_contiguous("attention", {dy, saved.lse});
  if (x.q.is_cuda()) return cuda::backward(dy, x, saved, mask);
  return saved.backend == Backend::math ? aten::backward(dy, x, saved, mask)
                                        : cpu::backward(dy, x, saved, mask);
}

Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form) {
  return forward(Heads(qkv, heads, kv_heads, form), mask, form.backend);
}

at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form) {
  return backward(dy, Heads(qkv, heads, kv_heads, form), saved, mask).together().view(qkv.sizes());
}

namespace aten {

using metrics::FlopScope;
using spec::ExecutedPass;
using enum spec::FlopComponent;

namespace {
/// q, k and v by key/value head, the G = H/K query heads of a group one below the other: no copies of k and
/// v.
struct Split {
  const std::int64_t B, T, S, H, K;
  const double scale;
  at::Tensor q, k;  ///< [B, K, G*T, E], [B, K, S, E]
  at::Tensor v;     ///< [B, K, S, W]

  explicit Split(const Heads& given)
      : B(given.B), T(given.T), S(given.S), H(given.H), K(given.K), scale(given.scale) {
    const Heads x = widened(given);
    q = grouped(x.q);
    k = x.k.transpose(1, 2);
    v = x.v.transpose(1, 2);
  }
  /// Joined heads in one copy.
  static Heads widened(const Heads& x) {
    Heads out = x;
    if (x.q.scalar_type() != at::kBFloat16) return out;
    if (x.joined.defined()) {
      const Parts parts(x.joined.to(at::kFloat), x.H, x.K, x.E, x.W);
      out.q = parts.q, out.k = parts.k, out.v = parts.v;
    } else {
      for (at::Tensor* each : {&out.q, &out.k, &out.v}) *each = each->to(at::kFloat);
    }
    return out;
  }
  at::Tensor grouped(const at::Tensor& x_BTHE) const {
    return x_BTHE.reshape({B, T, K, H / K, -1}).permute({0, 2, 3, 1, 4}).reshape({B, K, H / K * T, -1});
  }
  at::Tensor by_token(const at::Tensor& x) const {
    return x.view({B, K, H / K, T, -1}).permute({0, 3, 1, 2, 4}).reshape({B, T, H, -1}).contiguous();
  }
  /// Scaled scores [B, K, G*T, S], -inf where a token must not look.
  at::Tensor scores(const Mask& mask) const {
    const at::TensorOptions flags = q.options().dtype(at::kBool);
    at::Tensor hidden = at::ones({T, S}, flags).triu_(mask.first + 1).view({1, 1, 1, T, S});
    if (mask.window > 0)
      hidden.logical_or_(at::ones({T, S}, flags).tril_(mask.first - mask.window).view({1, 1, 1, T, S}));
    if (const at::Tensor& numbers = mask.documents.numbers; numbers.defined())
      hidden = hidden.logical_or(
          numbers.narrow(1, mask.first, T).reshape({B, 1, 1, T, 1}).ne(numbers.view({B, 1, 1, 1, S})));
    at::Tensor s = at::matmul(q, k.transpose(2, 3)).mul_(scale);
    s.view({B, K, H / K, T, S}).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
    return s;
  }
};

at::Tensor recomputed_scores(const Split& split, const Mask& mask) {
  const FlopScope scope(attention_scores, ExecutedPass::recompute);
  return split.scores(mask);
}
}  // namespace

Forward forward(const Heads& x, const Mask& mask) {
  const Split split(x);
  FlopScope scope(attention_scores);
  const at::Tensor s = split.scores(mask), lse = at::logsumexp(s, {3}, true);
  scope.enter(attention_values);
  return {split.by_token(at::matmul((s - lse).exp_(), split.v)).to(x.q.scalar_type()),
          lse.view({split.B, x.H, split.T}),
          Backend::math,
          {},
          {}};
}

Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask) {
  const Split split(x);
  const at::Tensor upstream = split.grouped(dy.to(split.q.scalar_type()));
  const at::Tensor p = (recomputed_scores(split, mask) - saved.lse.view({split.B, x.K, -1, 1})).exp_();
  FlopScope scope(attention_values);
  const at::Tensor dv = at::matmul(p.transpose(2, 3), upstream);
  const at::Tensor dp = at::matmul(upstream, split.v.transpose(2, 3));
  const at::Tensor ds = (dp - (p * dp).sum(3, true)).mul_(p).mul_(split.scale);
  scope.enter(attention_scores);
  const at::Tensor dq = split.by_token(at::matmul(ds, split.k)), dk = at::matmul(ds.transpose(2, 3), split.q);
  Gradients out = gradients_like(x);
  out.dq.copy_(dq);
  out.dk.copy_(dk.transpose(1, 2));
  out.dv.copy_(dv.transpose(1, 2));
  return out;
}
}  // namespace aten

}  // namespace assay::impl::attention
