#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "impl/ops/documents.hpp"
#include "impl/ops/rope/rope.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/attention_choice.hpp"

namespace assay::impl::attention {

using spec::attention::Case;
using Backend = spec::AttentionBackend;

/// What a token does not see of the tokens before it.
struct Mask {
  Documents documents;
  std::int64_t window;  ///< tokens that a token sees at most, itself among them; 0: no limit

  Mask(Documents of = {}, std::int64_t most = 0)  // NOLINT: implicit
      : documents(std::move(of)), window(most) {}
  /// Pairs of tokens that see each other in documents that are told apart by offsets.
  std::int64_t visible_pairs() const;
};

/// How heads differ from those of most models, and what computes them.
struct Form {
  std::int64_t value_dim = 0;  ///< [W] entries of a value head; 0: as many as a query head
  double score_factor = 1;     ///< of the scores beside 1/sqrt(E) (spec::latent_attention::score_factor)
  /// automatic: on a GPU whichever takes both passes of a shape first, found out by running both at the
  /// shape's first call; on a CPU our loops. A named one computes or throws UserError(usage) with the reason.
  Backend backend = Backend::automatic;
};
Form form_of(const spec::ModelSpec& model, Backend backend);

/// Heads of heads q | k | v that stand side by side in a token.
struct Heads {
  std::int64_t B, T, H, K, E, W;
  double scale;                                                         ///< of the scores
  std::int64_t columns() const { return (H + K) * E + K * W; }          ///< entries of a token
  std::int64_t key(std::int64_t head) const { return (H + head) * E; }  ///< first entry within a token
  std::int64_t value(std::int64_t head) const { return (H + K) * E + head * W; }
  Heads(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Form& form);
};

struct Forward {
  at::Tensor y;    ///< [B, T, H, W] contiguous
  at::Tensor lse;  ///< [B, H, T] log of the sum of exponentials of each row, fp32 for bf16, else dtype of qkv
  Backend backend = Backend::loops;   ///< that computed y and lse, and computes the gradient
  at::Tensor seed = {}, offset = {};  ///< dropout's, unused, which the fused backends hand to their backward
};

/// Causal grouped-query attention with documents and a window.                        [spec/ops/attention.md]
/// Token t sees token s iff s <= t, both are of the same document and t - s < window; scale 1/sqrt(E).
/// Shapes: qkv [B, T, H + 2K, E] contiguous, heads ordered q | k | v (query head h reads key/value head h /
/// (H/K)); where `form` states a width of values, W = that and qkv [B, T, (H + K) E + K W].
/// Errors: SpecError attention_c1..
Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form = {});

/// Gradient of forward with the probabilities recomputed from lse. dy [B, T, H, W] -> dqkv, shaped as qkv.
at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form = {});

/// The gradient [B, T, H + 2K, E] of what `qkv` was before rope::rotate turned its first H + K heads: the
/// same numbers as backward and then rope::rotate with inverse = true, in one pass over memory less where a
/// library gives the gradients of q, k and v apart. `table`, `positions` as rope::rotate took them.
at::Tensor backward_through_rope(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved,
                                 std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                                 const rope::Table& table, const at::Tensor& positions);

/// What was chosen, and not asked for by name, for each new shape on a GPU since the last call, one line
/// each, with the reason of every backend that refused it. Fused backends take bf16, of them flash alone
/// windows, and documents by their offsets; their backward adds in any order, so that gradients may differ in
/// the last bits between two runs, unless `deterministic()`.
std::vector<std::string> new_choices();

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
inline constexpr std::int64_t tile_rows = 12;  ///< query tokens that are worked on together
decltype(attention::forward) forward;
decltype(attention::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(attention::forward) forward;
decltype(attention::backward) backward;
decltype(attention::backward_through_rope) backward_through_rope;
/// Why `backend` does not compute both passes of the case on `device`; empty where it does. Both are run on
/// zeros, so that the library's plans are there for the calls of this thread that follow: up to seconds, and
/// memory as for one call of each pass.
std::string refusal(const Case& shape, Backend backend, at::Device device);
}  // namespace cuda
namespace aten {
Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form = {});
at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form = {});
}  // namespace aten

}  // namespace assay::impl::attention
