#include "spec/ops/bias/bias.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec::bias {

void check(const Shape& shape, std::int64_t bias_entries) {
  // bias_c2
  require(shape.out >= 1 && shape.N >= 0, "bias_c2",
          [&] { return "N=" + std::to_string(shape.N) + ", out=" + std::to_string(shape.out); });
  // bias_c1
  require(bias_entries == shape.out, "bias_c1", [&] {
    return "bias has " + std::to_string(bias_entries) +
           " entries, rows have out=" + std::to_string(shape.out);
  });
}

Flops forward_flops(const Shape& s) { return {0, Count(s.N) * s.out}; }

Flops backward_flops(const Shape& s) { return {0, Count(s.N) * s.out}; }

Count forward_bytes(const Shape& s, std::int64_t element) { return Count(s.out) * element; }

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t gradient) {
  return Count(s.N) * s.out * element + 2 * Count(s.out) * gradient;
}

}  // namespace assay::spec::bias
