// Attention on the GPU: cuDNN, then FlashAttention-2, then plain GEMMs, whichever first takes both passes
// of the shape (spec/ops/attention/attention_choice.hpp). cuDNN's backward is called without ATen and writes
// one gradient instead of three (docs/decisions/0015-cudnns-graph-by-hand.md). Documents are FlashAttention's
// sequences of different lengths (docs/decisions/0014-documents-in-fused-attention.md), and a window is its
// own.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/attention/attention_cudnn.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/determinism.hpp"
#include "spec/error.hpp"
#include "spec/ops/attention/attention.hpp"

namespace assay::impl::attention {

namespace {

Case case_of(const Heads& x, const Mask& mask, Backend asked) {
  const Documents& documents = mask.documents;
  const std::int64_t T = x.T;
  const bool several = documents.defined() && x.S > 1, span = x.S != T || mask.first != 0;
  return {.dtype = impl::cuda::dtype_of(x.q),
          .B = x.B,
          .T = T,
          .H = x.H,
          .K = x.K,
          .E = x.E,
          .W = x.W == x.E ? 0 : x.W,
          .documents = several,
          .offsets = several && documents.offsets.defined(),
          .window = spec::attention::window_within(mask.window, mask.first + T),
          .S = span ? x.S : 0,
          .first = mask.first,
          .asked = asked,
          .fixed_order = deterministic()};
}

/// The first line of an error, without the addresses and stack that follow.
std::string reason_of(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

/// The choice of every shape so far, and the lines about them that no caller of `new_choices` has yet.
class Choices {
 public:
  static Choices& all() {
    static Choices choices;
    return choices;
  }

  std::optional<Backend> find(const Case& shape) {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(shape);
    if (found == table_.end()) return {};
    return found->second;
  }
  void keep(const Case& shape, const spec::attention::Choice& choice) {
    const std::lock_guard lock(mutex_);
    if (!table_.emplace(shape, choice.backend).second || shape.asked != Backend::automatic) return;
    std::string line = describe(shape) + ": " + to_string(choice.backend);
    for (const std::string& reason : choice.reasons) line += "; " + reason;
    lines_.push_back(line);
  }
  std::vector<std::string> take_lines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::map<Case, Backend> table_;
  std::vector<std::string> lines_;
};

Forward fused_forward(const Heads& x, Backend backend) {
  const at::Tensor q = x.q.transpose(1, 2), k = x.k.transpose(1, 2), v = x.v.transpose(1, 2);
  auto [y, lse, from_q, from_k, max_q, max_k, seed, offset, mask] =
      backend == Backend::cudnn
          ? at::_scaled_dot_product_cudnn_attention(q, k, v, {}, /*compute_log_sumexp=*/true, 0.0,
                                                    /*is_causal=*/true, false, x.scale)
          : at::_scaled_dot_product_flash_attention(q, k, v, 0.0, /*is_causal=*/true, false, x.scale);
  return {y.transpose(1, 2).contiguous(), lse.view({x.B, x.H, x.T}), backend, seed, offset};
}

/// q, k and v [B, T or S, heads, E]; with documents [B*T, heads, E], those of all sequences one behind the
/// other.
struct Tokens {
  at::Tensor q, k, v;
  at::Tensor offsets;                ///< of the documents
  bool causal;                       ///< from the bottom right, else every query sees every key
  std::optional<std::int64_t> left;  ///< how many tokens before its own a token sees; nothing: all
  std::optional<std::int64_t> right;
  Tokens(const Heads& x, const Case& shape, const Mask& mask)
      : q(x.q), k(x.k), v(x.v), causal(mask.first + 1 < x.S || x.S == 1) {
    if (shape.documents) {
      for (at::Tensor* part : {&q, &k, &v}) *part = part->flatten(0, 1);
      offsets = mask.documents.offsets;
    }
    if (shape.window > 0) left = shape.window - 1;
    if (causal) right = 0;
  }
};

/// So many products over pairs as wide as a head: ATen's own count cannot see the mask.
void report_pairs(const Case& shape, const Mask& mask, std::int64_t scores, std::int64_t values) {
  const Count each = 2 * Count(shape.H) * shape.E;
  const auto report = [&](spec::FlopComponent component, std::int64_t products) {
    if (shape.documents) return metrics::report_pairs(component, products * each, mask.visible_pairs());
    const Count pairs = spec::attention::visible_pairs(
        {.B = shape.B, .T = shape.T, .H = shape.H, .K = shape.K, .E = shape.E, .S = shape.S},
        {.window = shape.window, .first = shape.first});
    metrics::report_flops(component, products * each * pairs);
  };
  report(spec::FlopComponent::attention_scores, scores);
  report(spec::FlopComponent::attention_values, values);
}

/// No document is longer than T, so that this bound, and with it the launch, is the same for every batch.
/// Places that are left have no tokens: their blocks return before they read or write anything.
Forward masked_forward(const Heads& heads, const Case& shape, const Mask& mask) {
  const Tokens x(heads, shape, mask);
  const auto offsets = shape.documents ? std::optional(x.offsets) : std::nullopt;
  auto [y, lse, seed, offset, debug_mask] =
      at::_flash_attention_forward(x.q, x.k, x.v, offsets, offsets, heads.T, heads.S, 0.0, x.causal,
                                   /*return_debug_mask=*/false, heads.scale, x.left, x.right);
  report_pairs(shape, mask, 1, 1);
  if (!shape.documents) return {y, lse, Backend::flash, seed, offset};
  TORCH_CHECK(lse.sizes() == at::IntArrayRef({shape.H, shape.B * shape.T}), "lse of documents is ",
              lse.sizes(), " and not heads by tokens");
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

Gradients flash_backward(const at::Tensor& dy, const Heads& x, const Forward& saved, bool fixed_order) {
  const at::Tensor none;
  const FixedOrder order(fixed_order);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      dy.transpose(1, 2), x.q.transpose(1, 2), x.k.transpose(1, 2), x.v.transpose(1, 2),
      saved.y.transpose(1, 2), saved.lse, none, none, x.T, x.T, 0.0, true, saved.seed, saved.offset, x.scale);
  return {dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)};
}

Gradients masked_backward(const at::Tensor& dy, const Heads& heads, const Forward& saved, const Case& shape,
                          const Mask& mask) {
  const Tokens x(heads, shape, mask);
  const at::Tensor upstream = dy.view(x.q.sizes()), y = saved.y.view(x.q.sizes());
  at::Tensor lse = saved.lse;
  if (shape.documents) lse = lse.transpose(0, 1).reshape({shape.H, shape.B * shape.T});
  const FixedOrder order(shape.fixed_order);
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(upstream, x.q, x.k, x.v, y, lse, x.offsets, x.offsets, heads.T, heads.S,
                                    0.0, x.causal, saved.seed, saved.offset, heads.scale, x.left, x.right);
  report_pairs(shape, mask, 2, 2);
  {
    const metrics::FlopScope again(spec::ExecutedPass::recompute);
    report_pairs(shape, mask, 1, 0);
  }
  return {dq.view(heads.q.sizes()), dk.view(heads.k.sizes()), dv.view(heads.v.sizes())};
}

/// The same products as ATen's call is counted with (impl/metrics/executed_flops.cpp).
void report_joined(const Case& shape) {
  const Count pairs = (Count(shape.T) * (shape.T + 1)).divided_exactly_by(2);
  const Count each = 2 * Count(shape.B) * shape.H * pairs, scores = each * shape.E,
              values = each * (shape.W > 0 ? shape.W : shape.E);
  metrics::report_flops(spec::FlopComponent::attention_scores, 2 * scores);
  metrics::report_flops(spec::FlopComponent::attention_values, 2 * values);
  const metrics::FlopScope again(spec::ExecutedPass::recompute);
  metrics::report_flops(spec::FlopComponent::attention_scores, scores);
}

/// What a call works on.
struct Call {
  const Heads& heads;
  const Mask& mask;
  Case shape;
  Call(const Heads& x, const Mask& given, Backend asked)
      : heads(x), mask(given), shape(case_of(x, given, asked)) {}
  /// What ATen's own fused calls compute: a sequence that attends to all of itself.
  bool plain() const { return !shape.documents && shape.window == 0 && shape.S == 0; }
};

Forward forward_by(Backend backend, const Call& on) {
  if (backend == Backend::math) return aten::forward(on.heads, on.mask);
  if (!on.plain()) return masked_forward(on.heads, on.shape, on.mask);
  return fused_forward(on.heads, backend);
}

/// By the backend that ran forward.
Gradients backward_by_forwards(const at::Tensor& dy, const Forward& saved, const Call& on) {
  const Heads& x = on.heads;
  switch (saved.backend) {
    case Backend::cudnn: {
      Gradients out = cudnn::backward(dy, x, saved.y, saved.lse, on.shape.fixed_order);
      report_joined(on.shape);
      return out;
    }
    case Backend::flash:
      return on.plain() ? flash_backward(dy, x, saved, on.shape.fixed_order)
                        : masked_backward(dy, x, saved, on.shape, on.mask);
    default:
      return aten::backward(dy, x, saved, on.mask);
  }
}

/// Why a library refuses `work`; empty where it does it. What is no refusal is thrown on: memory that ran
/// out, and faults of the device.
template <class Work>
std::string refusal_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::AcceleratorError&) {
    throw;
  } catch (const c10::Error& error) {
    return reason_of(error);
  }
}

/// Runs both passes, so that a library that takes them has its plans afterwards.
std::string refusal_of_passes(Backend backend, const Call& on) {
  if (backend == Backend::math) return "";
  const metrics::FlopCounter not_of_the_step;
  Forward out;
  if (std::string why = refusal_of([&] { out = forward_by(backend, on); }); !why.empty()) return why;
  std::string why = refusal_of([&] { backward_by_forwards(at::zeros_like(out.y), out, on); });
  return why.empty() ? why : "backward: " + why;
}

/// The one choice for a shape. A named backend is not tried: it runs, or its refusal is the caller's.
Backend chosen(const Call& on) {
  if (const auto known = Choices::all().find(on.shape)) return *known;
  const spec::attention::Choice choice = choose(on.shape, [&](Backend backend) {
    return on.shape.asked != Backend::automatic ? std::string() : refusal_of_passes(backend, on);
  });
  Choices::all().keep(on.shape, choice);
  return choice.backend;
}

/// Does `work`, a pass of `backend`. No other backend takes over where it is refused.
template <class Work>
void run_chosen(const Case& shape, Backend backend, const char* pass, const Work& work) {
  if (backend == Backend::math) return work();  // no library's: its errors are faults of the program
  const std::string why = refusal_of(work);
  if (why.empty()) return;
  throw UserError(ExitCode::usage, "compute.attention=" + to_string(backend) + " refuses the " + pass +
                                       " of " + describe(shape) + ": " + why +
                                       "; compute.attention=auto takes what can compute it, "
                                       "compute.attention=math computes any shape");
}

}  // namespace

std::vector<std::string> new_choices() { return Choices::all().take_lines(); }

namespace cuda {

std::string refusal(const Case& shape, Backend backend, at::Device device) {
  if (backend == Backend::math) return "";
  const at::TensorOptions of_ids = at::TensorOptions(device).dtype(at::kInt);
  const Form form{.value_dim = shape.W};
  const std::vector<std::int64_t> token = shape.W > 0
                                              ? std::vector{(shape.H + shape.K) * shape.E + shape.K * shape.W}
                                              : std::vector{shape.H + 2 * shape.K, shape.E};
  std::vector<std::int64_t> extents = {shape.B, shape.T};
  extents.insert(extents.end(), token.begin(), token.end());
  const Heads heads(at::zeros(extents, at::TensorOptions(device).dtype(at::kBFloat16)), shape.H, shape.K,
                    form);
  Documents documents;
  if (shape.documents)
    documents = {at::zeros({shape.B, shape.T}, of_ids),
                 at::arange(0, (shape.B + 1) * shape.T, shape.T, of_ids)};
  const Mask mask(documents, shape.window);
  Call on(heads, mask, shape.asked);
  on.shape = shape;
  return refusal_of_passes(backend, on);
}

Forward forward(const Heads& x, const Mask& mask, Backend asked) {
  const Call on(x, mask, asked);
  const Backend backend = chosen(on);
  Forward out;
  run_chosen(on.shape, backend, "forward pass", [&] { out = forward_by(backend, on); });
  return out;
}

Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask) {
  const Call on(x, mask, Backend::automatic);
  Gradients out;
  run_chosen(on.shape, saved.backend, "backward pass", [&] { out = backward_by_forwards(dy, saved, on); });
  return out;
}

}  // namespace cuda

}  // namespace assay::impl::attention
