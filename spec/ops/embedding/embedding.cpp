#include "spec/ops/embedding/embedding.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec::embedding {

void check(const Shape& shape, std::span<const std::int64_t> ids, Vocabulary rows) {
  const bool slice = rows == Vocabulary::slice;
  // embedding_c2
  require(shape.V >= (slice ? 0 : 1) && shape.D >= 1 && shape.N >= 0, "embedding_c2", [&] {
    return "N=" + std::to_string(shape.N) + ", V=" + std::to_string(shape.V) +
           ", D=" + std::to_string(shape.D);
  });
  // embedding_c1
  for (std::size_t n = 0; n < ids.size(); ++n) {
    require((ids[n] >= 0 && ids[n] < shape.V) || (slice && ids[n] == foreign), "embedding_c1", [&] {
      return "id " + std::to_string(ids[n]) + " at " + std::to_string(n) +
             " is not in [0, V=" + std::to_string(shape.V) + ")" +
             (slice ? " nor foreign (" + std::to_string(foreign) + ")" : "");
    });
  }
}

void check_upstream(const Shape& shape, std::int64_t dy_entries) {
  // embedding_c3
  require(dy_entries == shape.N * shape.D, "embedding_c3", [&] {
    return "dy has " + std::to_string(dy_entries) +
           " entries, y has N*D=" + std::to_string(shape.N * shape.D);
  });
}

Flops forward_flops(const Shape&) { return {}; }

Flops backward_flops(const Shape& s) { return {0, Count(s.N) * s.D}; }

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t id) {
  return Count(s.N) * id + 2 * Count(s.N) * s.D * element;
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t id, std::int64_t gradient) {
  return Count(s.N) * id + Count(s.N) * s.D * element + Count(s.V) * s.D * gradient;
}

}  // namespace assay::spec::embedding
