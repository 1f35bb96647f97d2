#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "impl/ops/documents.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/attention/attention_choice.hpp"

namespace assay::impl::attention {

using spec::attention::Case;
using Backend = spec::AttentionBackend;

/// Where queries stand among the keys, and what a token does not see of the tokens before it.
struct Mask {
  Documents documents;  ///< of the keys' tokens
  std::int64_t window;  ///< tokens that a token sees at most, itself among them; 0: no limit
  std::int64_t first;   ///< position of the first query, whose own key is number `first`

  Mask(Documents of = {}, std::int64_t most = 0, std::int64_t at = 0)  // NOLINT: implicit
      : documents(std::move(of)), window(most), first(at) {}
  /// Pairs of tokens that see each other in documents that have offsets.
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

/// q, k and v of all heads, as views whose last extent is contiguous, and the size of their scores.
struct Heads {
  at::Tensor q;       ///< [B, T, H, E]
  at::Tensor k;       ///< [B, S, K, E]
  at::Tensor v;       ///< [B, S, K, W]
  at::Tensor joined;  ///< whose parts they are, q | k | v of each token; undefined: they stand apart
  std::int64_t B, T, S, H, K, E, W;
  double scale;  ///< of the scores: factor / sqrt(E)

  /// Apart. Errors: SpecError attention_c1.
  Heads(at::Tensor q, at::Tensor k, at::Tensor v, double score_factor = 1);
  /// The parts of qkv [B, T, H + 2K, E], where `form` states a width of values [B, T, (H + K) E + K W].
  /// Errors: SpecError attention_c1.
  Heads(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Form& form = {});
};

/// Gradients of q, k and v, of the same shapes; of heads that are joined views of `joined` like them, or
/// apart where a library gives them so.
struct Gradients {
  at::Tensor dq, dk, dv;
  at::Tensor joined = {};
  /// dq | dk | dv of each token, in a pass over memory where they stand apart. [B, T, (H + K) E + K W]
  at::Tensor together() const;
};

/// Uninitialised, for what computes them.
Gradients gradients_like(const Heads& x);

struct Forward {
  at::Tensor y;    ///< [B, T, H, W] contiguous
  at::Tensor lse;  ///< [B, H, T] log of the sum of exponentials of each row, fp32 for bf16, else dtype of qkv
  Backend backend = Backend::loops;   ///< that computed y and lse, and computes the gradient
  at::Tensor seed = {}, offset = {};  ///< dropout's, unused, which the fused backends hand to their backward
};

/// Causal grouped-query attention with documents and a window. [spec/ops/attention/attention.md] Query t, at
/// position mask.first + t among the keys, sees key s iff s <= first + t, both are of the same document and
/// first + t - s < window; scale 1/sqrt(E). Query head h reads key/value head h / (H/K). `backend`: of Form.
/// Errors: SpecError attention_c1 .. attention_c7.
Forward forward(const Heads& x, const Mask& mask, Backend backend = Backend::automatic);
/// Gradient of forward with the probabilities recomputed from lse. dy [B, T, H, W] contiguous.
Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask);

/// The same of heads that are joined: qkv as Heads takes it, contiguous; the gradient is shaped as qkv.
Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const Mask& mask,
                const Form& form = {});
at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const Mask& mask, const Form& form = {});

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
Forward forward(const Heads& x, const Mask& mask);
Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask);
}  // namespace cpu
namespace cuda {
Forward forward(const Heads& x, const Mask& mask, Backend backend);
Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask);
/// Why `backend` does not compute both passes of the case on `device`; empty where it does. Both are run on
/// zeros, so that the library's plans are there for the calls of this thread that follow: up to seconds, and
/// memory as for one call of each pass.
std::string refusal(const Case& shape, Backend backend, at::Device device);
}  // namespace cuda
namespace aten {
Forward forward(const Heads& x, const Mask& mask);
Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask);
}  // namespace aten

}  // namespace assay::impl::attention
