// Attention on the GPU: cuDNN, then FlashAttention-2, then plain products, whichever takes the shape first.
// The choice is made once per shape. cuDNN's backward is called without ATen where it takes the shape so,
// which writes one gradient instead of three (docs/decisions/0015-cudnns-graph-by-hand.md). Documents are
// FlashAttention's sequences of different lengths (docs/decisions/0014-documents-in-fused-attention.md).
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention.hpp"
#include "impl/ops/attention_cudnn.hpp"
#include "impl/ops/determinism.hpp"
#include "spec/error.hpp"

namespace assay::impl::attention {

namespace {

/// What a choice depends on.
struct Shape {
  at::ScalarType type;
  std::int64_t B, T, H, K, E;
  bool documents;  ///< told apart; of one token a sequence nothing is left to mask
  bool offsets;    ///< of the documents
  std::optional<Backend> forced;
  bool fixed_order;  ///< of backward's sums
  auto operator<=>(const Shape&) const = default;
};

Shape shape_of(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Documents& documents) {
  const std::int64_t T = qkv.size(1);
  const bool told_apart = documents.defined() && T > 1;
  return {.type = qkv.scalar_type(),
          .B = qkv.size(0),
          .T = T,
          .H = heads,
          .K = kv_heads,
          .E = qkv.size(3),
          .documents = told_apart,
          .offsets = told_apart && documents.offsets.defined(),
          .forced = forced(),
          .fixed_order = deterministic()};
}

std::string name(Backend backend) {
  switch (backend) {
    case Backend::cudnn:
      return "cudnn";
    case Backend::flash:
      return "flash";
    case Backend::math:
      return "math";
  }
  return "";
}

std::string describe(const Shape& s) {
  return "attention of [" + std::to_string(s.B) + ", " + std::to_string(s.T) + ", " + std::to_string(s.H) +
         " + 2 x " + std::to_string(s.K) + ", " + std::to_string(s.E) + "] " + c10::toString(s.type) +
         (s.documents ? " with documents" : "");
}

/// The first line of an error, without the addresses and stack that follow.
std::string reason_of(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

/// The only backend that may compute `s` does not.
[[noreturn]] void refuse_forced(const Shape& s, Backend backend, const std::string& reason) {
  throw UserError(ExitCode::usage, "compute.attention=" + name(backend) + " refuses " + describe(s) + ": " +
                                       reason + "; compute.attention=auto takes what can compute it");
}

/// Which backends each shape has been refused by, and what is yet to be told.
class Choices {
 public:
  static Choices& all() {
    static Choices choices;
    return choices;
  }

  /// The first backend not yet known to refuse `shape`.
  Backend of(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = table_.try_emplace(shape, first(shape));
    if (is_new && entry->second.backend == Backend::math) tell(entry->first, entry->second);
    return entry->second.backend;
  }
  /// `backend` does not take `shape`: the next one is asked from now on.
  void refused(const Shape& shape, Backend backend, const std::string& reason) {
    if (shape.forced) refuse_forced(shape, backend, reason);
    const std::lock_guard lock(mutex_);
    Entry& entry = table_.at(shape);
    entry.reasons.push_back(name(backend) + " refused: " + reason);
    entry.backend = backend == Backend::cudnn ? Backend::flash : Backend::math;
    entry.told = false;
    if (entry.backend == Backend::math) tell(shape, entry);
  }
  /// Whether cuDNN is asked for the gradient of `shape` in one tensor.
  bool joined(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    return table_.at(shape).joined;
  }
  /// cuDNN does not give it in one: ATen asks for three from now on.
  void refused_joined(const Shape& shape, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    Entry& entry = table_.at(shape);
    entry.reasons.push_back("gradients of q, k and v apart: " + reason);
    entry.joined = false;
    entry.told = false;
  }
  void accepted(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    tell(shape, table_.at(shape));
  }
  std::vector<std::string> take_lines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  struct Entry {
    Backend backend;
    std::vector<std::string> reasons;
    bool told = false;
    bool joined = true;
  };
  /// What the fused backends are known not to take is not asked of them.
  static std::string refusal_of_both(const Shape& shape) {
    if (shape.type != at::kBFloat16) return "cudnn and flash take bf16 only";
    if (shape.documents && !shape.offsets) return "cudnn and flash are not given documents without offsets";
    if (shape.E % 8 != 0) return "cudnn and flash take multiples of 8 as head dimension";
    return "";
  }
  static Entry first(const Shape& shape) {
    const std::string both = refusal_of_both(shape), cudnn = shape.T == 1 ? "cudnn is not given single tokens"
                                                             : shape.documents
                                                                 ? "cudnn is not given documents"
                                                                 : "";
    if (!shape.forced) {
      if (!both.empty()) return {Backend::math, {both}};
      if (!cudnn.empty()) return {Backend::flash, {cudnn}};
      return {Backend::cudnn, {}};
    }
    if (*shape.forced != Backend::math && !both.empty()) refuse_forced(shape, *shape.forced, both);
    if (*shape.forced == Backend::cudnn && !cudnn.empty()) refuse_forced(shape, Backend::cudnn, cudnn);
    return {*shape.forced, {"asked for by compute.attention"}};
  }
  void tell(const Shape& shape, Entry& entry) {
    if (entry.told) return;
    entry.told = true;
    std::string line = describe(shape) + ": " + name(entry.backend);
    for (const std::string& reason : entry.reasons) line += "; " + reason;
    lines_.push_back(line);
  }

  std::mutex mutex_;
  std::map<Shape, Entry> table_;
  std::vector<std::string> lines_;
};

/// Views [B, heads, T, E] of the three parts of qkv.
struct Parts {
  at::Tensor q, k, v;
  Parts(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads)
      : q(qkv.narrow(2, 0, heads).transpose(1, 2)),
        k(qkv.narrow(2, heads, kv_heads).transpose(1, 2)),
        v(qkv.narrow(2, heads + kv_heads, kv_heads).transpose(1, 2)) {}
};

Forward fused_forward(const Parts& x, Backend backend) {
  const double scale = 1 / std::sqrt(static_cast<double>(x.q.size(3)));
  auto [y, lse, from_q, from_k, max_q, max_k, seed, offset, mask] =
      backend == Backend::cudnn
          ? at::_scaled_dot_product_cudnn_attention(x.q, x.k, x.v, {}, /*compute_log_sumexp=*/true, 0.0,
                                                    /*is_causal=*/true, false, scale)
          : at::_scaled_dot_product_flash_attention(x.q, x.k, x.v, 0.0, /*is_causal=*/true, false, scale);
  return {y.transpose(1, 2).contiguous(), lse.view({x.q.size(0), x.q.size(1), x.q.size(2)}), backend, seed,
          offset};
}

/// q, k and v as views [B*T, heads, E]: the documents of all sequences one behind the other.
struct Tokens {
  at::Tensor q, k, v;
  double scale;
  Tokens(const at::Tensor& qkv, const Shape& shape) : scale(1 / std::sqrt(static_cast<double>(shape.E))) {
    const at::Tensor all = qkv.view({shape.B * shape.T, shape.H + 2 * shape.K, shape.E});
    q = all.narrow(1, 0, shape.H);
    k = all.narrow(1, shape.H, shape.K);
    v = all.narrow(1, shape.H + shape.K, shape.K);
  }
};

/// So many products over pairs as wide as a head: ATen's own count cannot see the documents.
void report_pairs(const Shape& shape, const Documents& documents, std::int64_t scores, std::int64_t values) {
  const Count each = 2 * Count(shape.H) * shape.E;
  metrics::report_pairs(spec::FlopComponent::attention_scores, scores * each, documents.visible_pairs);
  metrics::report_pairs(spec::FlopComponent::attention_values, values * each, documents.visible_pairs);
}

/// No document is longer than T, so that this bound, and with it the launch, is the same for every batch.
/// Places that are left have no tokens: their blocks return before they read or write anything.
Forward documents_forward(const at::Tensor& qkv, const Shape& shape, const Documents& documents) {
  const Tokens x(qkv, shape);
  auto [y, lse, seed, offset, mask] =
      at::_flash_attention_forward(x.q, x.k, x.v, documents.offsets, documents.offsets, shape.T, shape.T, 0.0,
                                   /*is_causal=*/true, /*return_debug_mask=*/false, x.scale);
  TORCH_CHECK(lse.sizes() == at::IntArrayRef({shape.H, shape.B * shape.T}), "lse of documents is ",
              lse.sizes(), " and not heads by tokens");
  report_pairs(shape, documents, 1, 1);
  return {y.view({shape.B, shape.T, shape.H, shape.E}),
          lse.view({shape.H, shape.B, shape.T}).transpose(0, 1).contiguous(), Backend::flash, seed, offset};
}

/// While it lives ATen asks cuDNN and flash for a backward that adds in a fixed order.
class FixedOrder {
 public:
  explicit FixedOrder(bool wanted)
      : context_(at::globalContext()),
        before_(context_.deterministicAlgorithms()),
        warned_(context_.deterministicAlgorithmsWarnOnly()),
        filled_(context_.deterministicFillUninitializedMemory()) {
    if (!wanted) return;
    context_.setDeterministicAlgorithms(true, /*warn_only=*/false);
    context_.setDeterministicFillUninitializedMemory(false);  // every entry is written
  }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;
  ~FixedOrder() {
    context_.setDeterministicAlgorithms(before_, warned_);
    context_.setDeterministicFillUninitializedMemory(filled_);
  }

 private:
  at::Context& context_;
  const bool before_, warned_, filled_;
};

/// Gradients of q, k and v [B, T, heads, E].
struct Gradients {
  at::Tensor dq, dk, dv;
};

Gradients fused_backward(const at::Tensor& dy, const Parts& x, const Forward& saved) {
  const double scale = 1 / std::sqrt(static_cast<double>(x.q.size(3)));
  const std::int64_t T = x.q.size(2);
  const at::Tensor upstream = dy.transpose(1, 2), y = saved.y.transpose(1, 2), none;
  const FixedOrder order(deterministic());
  const auto [dq, dk, dv] = saved.backend == Backend::cudnn
                                ? at::_scaled_dot_product_cudnn_attention_backward(
                                      upstream, x.q, x.k, x.v, y, saved.lse.unsqueeze(-1), saved.seed,
                                      saved.offset, none, none, none, T, T, 0.0, true, scale)
                                : at::_scaled_dot_product_flash_attention_backward(
                                      upstream, x.q, x.k, x.v, y, saved.lse, none, none, T, T, 0.0, true,
                                      saved.seed, saved.offset, scale);
  return {dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)};
}

Gradients documents_backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                             const Shape& shape, const Documents& documents) {
  const Tokens x(qkv, shape);
  const at::Tensor upstream = dy.view(x.q.sizes()), y = saved.y.view(x.q.sizes()),
                   lse = saved.lse.transpose(0, 1).reshape({shape.H, shape.B * shape.T});
  const FixedOrder order(deterministic());
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      upstream, x.q, x.k, x.v, y, lse, documents.offsets, documents.offsets, shape.T, shape.T, 0.0,
      /*is_causal=*/true, saved.seed, saved.offset, x.scale);
  report_pairs(shape, documents, 2, 2);
  {
    const metrics::FlopScope again(spec::ExecutedPass::recompute);
    report_pairs(shape, documents, 1, 0);
  }
  const auto by_sequence = [&](const at::Tensor& x_NHE, std::int64_t heads) {
    return x_NHE.view({shape.B, shape.T, heads, shape.E});
  };
  return {by_sequence(dq, shape.H), by_sequence(dk, shape.K), by_sequence(dv, shape.K)};
}

/// The same products as ATen's call is counted with (impl/metrics/executed_flops.cpp).
void report_joined(const Shape& shape) {
  const Count pairs = (Count(shape.T) * (shape.T + 1)).divided_exactly_by(2);
  const Count each = 2 * Count(shape.B) * shape.H * shape.E * pairs;
  metrics::report_flops(spec::FlopComponent::attention_scores, 2 * each);
  metrics::report_flops(spec::FlopComponent::attention_values, 2 * each);
  const metrics::FlopScope again(spec::ExecutedPass::recompute);
  metrics::report_flops(spec::FlopComponent::attention_scores, each);
}

/// dqkv by cuDNN where it ran forward and writes its gradient into one tensor; else undefined.
at::Tensor try_joined_backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                               const Shape& shape) {
  if (saved.backend != Backend::cudnn || !Choices::all().joined(shape)) return {};
  try {
    at::Tensor dqkv = cudnn::backward(dy, qkv, saved.y, saved.lse, shape.H, shape.K, shape.fixed_order);
    report_joined(shape);
    Choices::all().accepted(shape);
    return dqkv;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    Choices::all().refused_joined(shape, reason_of(error));
    return {};
  }
}

/// Nothing where the backend that ran forward refuses the shape's backward: plain products take over.
std::optional<Gradients> try_fused_backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                                            const Shape& shape, const Documents& documents) {
  if (saved.backend == Backend::math) return {};
  try {
    Gradients gradients = shape.documents ? documents_backward(dy, qkv, saved, shape, documents)
                                          : fused_backward(dy, Parts(qkv, shape.H, shape.K), saved);
    Choices::all().accepted(shape);
    return gradients;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    Choices::all().refused(shape, saved.backend, "backward: " + reason_of(error));
    return {};
  }
}

}  // namespace

std::vector<std::string> new_choices() { return Choices::all().take_lines(); }

namespace cuda {

Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads,
                const Documents& documents) {
  const Shape shape = shape_of(qkv, heads, kv_heads, documents);
  const Parts parts(qkv, heads, kv_heads);
  for (;;) {
    const Backend backend = Choices::all().of(shape);
    if (backend == Backend::math) return aten::forward(qkv, heads, kv_heads, documents);
    try {
      return shape.documents ? documents_forward(qkv, shape, documents) : fused_forward(parts, backend);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {
      Choices::all().refused(shape, backend, reason_of(error));
    }
  }
}

at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Documents& documents) {
  const Shape shape = shape_of(qkv, heads, kv_heads, documents);
  if (at::Tensor dqkv = try_joined_backward(dy, qkv, saved, shape); dqkv.defined()) return dqkv;
  const auto apart = try_fused_backward(dy, qkv, saved, shape, documents);
  return apart ? at::cat({apart->dq, apart->dk, apart->dv}, 2)
               : aten::backward(dy, qkv, saved, heads, kv_heads, documents);
}

at::Tensor backward_through_rope(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                                 std::int64_t heads, std::int64_t kv_heads, const Documents& documents,
                                 const rope::Table& table, const at::Tensor& positions) {
  const Shape shape = shape_of(qkv, heads, kv_heads, documents);
  at::Tensor dqkv = try_joined_backward(dy, qkv, saved, shape);
  if (!dqkv.defined()) {
    if (const auto apart = try_fused_backward(dy, qkv, saved, shape, documents))
      return rope::joined_backward(apart->dq, apart->dk, apart->dv, table, positions);
    dqkv = aten::backward(dy, qkv, saved, heads, kv_heads, documents);
  }
  rope::rotate(dqkv, heads + kv_heads, table, positions, /*inverse=*/true);
  return dqkv;
}

}  // namespace cuda

}  // namespace assay::impl::attention
