#include "spec/ops/linear/linear.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec::linear {

void check(const Shape& shape, std::int64_t weight_in) {
  // linear_c2
  require(shape.in >= 1 && shape.out >= 1 && shape.N >= 0, "linear_c2", [&] {
    return "N=" + std::to_string(shape.N) + ", in=" + std::to_string(shape.in) +
           ", out=" + std::to_string(shape.out);
  });
  // linear_c1
  require(weight_in == shape.in, "linear_c1", [&] {
    return "weight takes rows of " + std::to_string(weight_in) + ", x has in=" + std::to_string(shape.in);
  });
}

void check_upstream(const Shape& shape, std::int64_t dy_entries) {
  // linear_c3
  require(dy_entries == shape.N * shape.out, "linear_c3", [&] {
    return "dy has " + std::to_string(dy_entries) +
           " entries, y has N*out=" + std::to_string(shape.N * shape.out);
  });
}

Flops forward_flops(const Shape& s) { return {2 * Count(s.N) * s.in * s.out, 0}; }

Flops backward_flops(const Shape& s) { return {4 * Count(s.N) * s.in * s.out, 0}; }

Count forward_bytes(const Shape& s, std::int64_t element) {
  return (Count(s.N) * s.in + Count(s.in) * s.out + Count(s.N) * s.out) * element;
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t gradient) {
  return (2 * Count(s.N) * s.in + Count(s.in) * s.out + Count(s.N) * s.out) * element +
         Count(s.in) * s.out * gradient;
}

}  // namespace assay::spec::linear
