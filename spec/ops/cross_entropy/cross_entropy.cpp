#include "spec/ops/cross_entropy/cross_entropy.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::cross_entropy {

void check(const Shape& shape, std::span<const std::int64_t> targets, double normalizer, const Terms& terms,
           Vocabulary columns) {
  const bool slice = columns == Vocabulary::slice;
  // cross_entropy_c5
  require(shape.V >= (slice ? 0 : 1) && shape.N >= 0, "cross_entropy_c5",
          [&] { return "N=" + std::to_string(shape.N) + ", V=" + std::to_string(shape.V); });
  // cross_entropy_c1
  require(static_cast<std::int64_t>(targets.size()) == shape.N, "cross_entropy_c1", [&] {
    return std::to_string(targets.size()) + " targets, logits have N=" + std::to_string(shape.N) + " rows";
  });
  // cross_entropy_c2
  for (std::size_t n = 0; n < targets.size(); ++n) {
    const bool known = targets[n] == ignore || (slice && targets[n] == foreign);
    require(known || (targets[n] >= 0 && targets[n] < shape.V), "cross_entropy_c2", [&] {
      return "target " + std::to_string(targets[n]) + " at " + std::to_string(n) +
             " is neither in [0, V=" + std::to_string(shape.V) + ") nor " + std::to_string(ignore) +
             (slice ? " nor foreign (" + std::to_string(foreign) + ")" : "");
    });
  }
  // cross_entropy_c3
  require(std::isfinite(normalizer) && normalizer > 0, "cross_entropy_c3",
          [&] { return "normalizer=" + std::to_string(normalizer); });
  // cross_entropy_c4
  require(std::isfinite(terms.z) && terms.z >= 0, "cross_entropy_c4",
          [&] { return "z_loss=" + std::to_string(terms.z); });
}

std::int64_t count_valid(std::span<const std::int64_t> targets) {
  std::int64_t valid = 0;
  for (std::int64_t target : targets) valid += target != ignore;
  return valid;
}

Flops forward_flops(const Shape& s, std::int64_t valid) {
  return {0, Count(s.N) * (3 * Count(s.V) + 2) + 4 * Count(valid) + 4};
}

Flops backward_flops(const Shape& s, std::int64_t valid) {
  return {0, Count(valid) * (3 * Count(s.V) + 5) + 1};
}

Flops partial_flops(const Shape& s) { return {0, 3 * Count(s.N) * s.V}; }
Flops rescale_flops(std::int64_t N) { return {0, 3 * Count(N)}; }
Flops combine_flops(std::int64_t N, std::int64_t valid) { return {0, 2 * Count(N) + 4 * Count(valid) + 4}; }

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t id, std::int64_t statistic) {
  return Count(s.N) * s.V * element + Count(s.N) * (Count(id) + statistic);
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t id, std::int64_t statistic) {
  return 2 * Count(s.N) * s.V * element + Count(s.N) * (Count(id) + statistic);
}

Count partial_bytes(const Shape& s, std::int64_t element, std::int64_t id, std::int64_t statistic) {
  return Count(s.N) * s.V * element + Count(s.N) * (Count(id) + 3 * Count(statistic));
}

Count rescale_bytes(std::int64_t N, std::int64_t statistic) { return 4 * Count(N) * statistic; }

Count combine_bytes(std::int64_t N, std::int64_t id, std::int64_t statistic) {
  return Count(N) * (Count(id) + 4 * Count(statistic));
}

}  // namespace assay::spec::cross_entropy
