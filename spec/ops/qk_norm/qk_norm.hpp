#pragma once
// Shape rules, FLOPs and bytes of qk_norm. Equation, source and worked example: spec/ops/qk_norm/qk_norm.md.
#include <cstdint>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec::qk_norm {

struct Shape {
  std::int64_t B = 0;  ///< sequences
  std::int64_t T = 0;  ///< tokens of a sequence
  std::int64_t H = 0;  ///< query heads
  std::int64_t K = 0;  ///< key heads
  std::int64_t E = 0;  ///< entries of a head
  /// Whether the query heads of a token are normalised as one row and its key heads as another, with gains of
  /// H E and K E entries, or each head as a row of its own, with gains of E entries.
  bool across_heads = false;

  std::int64_t query_rows() const { return across_heads ? 1 : H; }       ///< of a token
  std::int64_t key_rows() const { return across_heads ? 1 : K; }         ///< of a token
  std::int64_t statistics() const { return query_rows() + key_rows(); }  ///< of a token
};

/// The shape with `across_heads` as the gains' extents say. Errors: SpecError qk_norm_c1 (gains neither of E
/// entries both nor of H E and K E), qk_norm_c3 (eps not > 0 and finite), qk_norm_c4 (E, H or K < 1, or B or
/// T negative).
Shape check(Shape shape, std::int64_t q_gain_entries, std::int64_t k_gain_entries, double eps);
/// The shape of q and k from their extents. Errors: SpecError qk_norm_c2 (not [B, T, H, E] and [B, T, K, E]).
Shape shape_of(const std::vector<std::int64_t>& q, const std::vector<std::int64_t>& k);

Flops forward_flops(const Shape& shape);   ///< vector: B*T*(4(H + K)E + 4 statistics)
Flops backward_flops(const Shape& shape);  ///< vector: B*T*(11(H + K)E + statistics)

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` and `statistic` as in rms_norm.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

/// The same with rope behind it, in one pass: the table of angles beside it, and in forward the K value heads
/// copied. Unit: [B].
Count forward_rope_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_rope_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

}  // namespace assay::spec::qk_norm
