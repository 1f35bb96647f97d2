#pragma once
// Shape rules, FLOPs and bytes of embedding. Equation, source and worked example:
// spec/ops/embedding/embedding.md.
#include <cstdint>
#include <span>

#include "spec/count.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::spec::embedding {

struct Shape {
  std::int64_t N = 0;  ///< ids (B*T)
  std::int64_t V = 0;  ///< rows of the table
  std::int64_t D = 0;  ///< entries of a row
};

/// A slice may have no rows, and ids may be `foreign`. Errors: SpecError embedding_c1 (an id outside [0, V);
/// names the first one and its place), embedding_c2 (V < 1, D < 1 or N < 0).
void check(const Shape& shape, std::span<const std::int64_t> ids, Vocabulary rows = Vocabulary::whole);
/// Errors: SpecError embedding_c3 (dy does not have N * D entries).
void check_upstream(const Shape& shape, std::int64_t dy_entries);

Flops forward_flops(const Shape& shape);   ///< none: copies
Flops backward_flops(const Shape& shape);  ///< vector: N*D

/// Compulsory traffic, N rows of the table in forward. Unit: [B].
/// `element` = bytes of table, y and dy; `id` = bytes of one id; `gradient` = bytes of dtable.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t id);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t id, std::int64_t gradient);

}  // namespace assay::spec::embedding
