#pragma once
// Shape rules, FLOPs and bytes of qk_norm. Equation, source and worked example: spec/ops/qk_norm.md.
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
};

/// Errors: SpecError qk_norm_c1 (entries of a gain != E), qk_norm_c3 (eps not > 0 and finite), qk_norm_c4 (E,
/// H or K < 1, or B or T negative).
void check(const Shape& shape, std::int64_t q_gain_entries, std::int64_t k_gain_entries, double eps);
/// The shape of q and k from their extents. Errors: SpecError qk_norm_c2 (not [B, T, H, E] and [B, T, K, E]).
Shape shape_of(const std::vector<std::int64_t>& q, const std::vector<std::int64_t>& k);

Flops forward_flops(const Shape& shape);   ///< vector: B*T*(H + K)*(4E + 4)
Flops backward_flops(const Shape& shape);  ///< vector: B*T*(H + K)*(11E + 1)

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` and `statistic` as in rms_norm.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

/// The same with rope behind it, in one pass: the table of angles beside it, and in forward the K value heads
/// copied. Unit: [B].
Count forward_rope_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_rope_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

}  // namespace assay::spec::qk_norm
