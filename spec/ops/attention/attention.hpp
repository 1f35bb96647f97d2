#pragma once
// Mask, shape rules, FLOPs and bytes of attention. Equation, source and worked example:
// spec/ops/attention/attention.md.
#include <cstdint>
#include <span>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec::attention {

struct Shape {
  std::int64_t B = 0;  ///< sequences
  std::int64_t T = 0;  ///< query tokens of a sequence
  std::int64_t H = 0;  ///< query heads
  std::int64_t K = 0;  ///< key/value heads, divides H
  std::int64_t E = 0;  ///< entries of a query and key head
  std::int64_t W = 0;  ///< entries of a value head; 0: E
  std::int64_t S = 0;  ///< key and value tokens of a sequence; 0: T
  std::int64_t keys() const { return S > 0 ? S : T; }
  std::int64_t value_dim() const { return W > 0 ? W : E; }
};

/// Document numbers of B*S tokens, row-major and never decreasing within a sequence; empty: one document per
/// sequence.
using Documents = std::span<const std::int64_t>;

/// Where queries stand among the keys, and what a token does not see of the tokens before it.
struct Mask {
  Documents documents = {};
  std::int64_t window = 0;  ///< tokens that a token sees at most, itself among them; 0: no limit
  std::int64_t first = 0;   ///< position of the first query, whose own key is number `first`
};

/// The window where it leaves something out of sequences of T tokens, else 0.
inline std::int64_t window_within(std::int64_t window, std::int64_t T) { return window < T ? window : 0; }

/// Errors: SpecError attention_c2 (K does not divide H), attention_c3 (documents neither empty nor B*S),
/// attention_c4 (documents decrease within a sequence), attention_c5 (E < 1, H < 1, or B, T, W or S
/// negative), attention_c6 (window negative), attention_c7 (first negative, a query that sees no key, or one
/// behind the keys whose document is not known).
void check(const Shape& shape, const Mask& mask);
/// `extents` of the tensor called `name` against the expected ones. Errors: SpecError attention_c1.
void check_extents(const char* name, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& expected);

/// First and last key that query t of sequence b sees; it sees all between them.
std::int64_t first_visible(const Shape& shape, const Mask& mask, std::int64_t b, std::int64_t t);
std::int64_t last_visible(const Shape& shape, const Mask& mask, std::int64_t t);

/// Visible (t, s) pairs of one document of n tokens, each once: n*(n + 1)/2, less m*(m + 1)/2 for the
/// m = n - window tokens that a window shorter than the document leaves out of the last one's sight.
Count document_pairs(std::int64_t n, std::int64_t window);
/// The same of all documents of all sequences.
Count visible_pairs(const Shape& shape, const Mask& mask);

/// FLOPs of the model, for MFU. With P = visible_pairs: matmul 2*H*(E + W)*P, vector 4*H*P + B*T*H*(W + 2).
Flops forward_flops(const Shape& shape, const Mask& mask);
/// FLOPs of the model, for MFU: matmul 4*H*(E + W)*P (twice forward), vector 3*H*P + 2*B*T*H*W.
Flops backward_flops(const Shape& shape, const Mask& mask);
/// What backward executes beyond backward_flops, scores and probabilities again: matmul 2*H*E*P, vector
/// 3*H*P.
Flops recomputed_flops(const Shape& shape, const Mask& mask);

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` = bytes of q, k, v, y and their gradients; `statistic` = bytes of one lse.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

}  // namespace assay::spec::attention
