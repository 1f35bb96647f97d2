#include "spec/ops/grouped_linear/grouped_linear.hpp"

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::grouped_linear {

void check(const Shape& s, std::int64_t weight_in, std::span<const std::int64_t> offsets) {
  // grouped_linear_c2
  require(s.in >= 1 && s.out >= 1 && s.X >= 1 && s.R >= 0, "grouped_linear_c2", [&] {
    return "R=" + std::to_string(s.R) + ", in=" + std::to_string(s.in) + ", out=" + std::to_string(s.out) +
           ", X=" + std::to_string(s.X);
  });
  // grouped_linear_c1
  require(weight_in == s.in, "grouped_linear_c1", [&] {
    return "weights take rows of " + std::to_string(weight_in) + ", x has in=" + std::to_string(s.in);
  });
  const bool sound = static_cast<std::int64_t>(offsets.size()) == s.X + 1 && offsets.front() == 0 &&
                     offsets.back() == s.R && std::is_sorted(offsets.begin(), offsets.end());
  // grouped_linear_c3
  require(sound, "grouped_linear_c3", [&] {
    std::string text = "offsets";
    for (const std::int64_t offset : offsets) text += " " + std::to_string(offset);
    return text + " with X=" + std::to_string(s.X) + " and R=" + std::to_string(s.R);
  });
}

void check_upstream(const Shape& s, std::int64_t dy_entries) {
  // grouped_linear_c4
  require(dy_entries == s.R * s.out, "grouped_linear_c4", [&] {
    return "dy has " + std::to_string(dy_entries) + " entries, y has R*out=" + std::to_string(s.R * s.out);
  });
}

Flops forward_flops(const Shape& s) { return {2 * Count(s.R) * s.in * s.out, 0}; }

Flops backward_flops(const Shape& s) { return {4 * Count(s.R) * s.in * s.out, 0}; }

Count forward_bytes(const Shape& s, std::int64_t used, std::int64_t element) {
  return (Count(s.R) * s.in + Count(used) * s.in * s.out + Count(s.R) * s.out) * element;
}

Count backward_bytes(const Shape& s, std::int64_t used, std::int64_t element, std::int64_t gradient) {
  return (2 * Count(s.R) * s.in + Count(used) * s.in * s.out + Count(s.R) * s.out) * element +
         Count(s.X) * s.in * s.out * gradient;
}

}  // namespace assay::spec::grouped_linear
