#include "spec/batch/nearest_batch.hpp"

namespace assay::spec {

std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit, above = below + unit;
  return below == 0 ? std::to_string(above) : std::to_string(below) + " or " + std::to_string(above);
}

std::string nearest_divisors(std::int64_t value, std::int64_t wanted) {
  std::int64_t below = 1, above = value;
  for (std::int64_t divisor = 1; divisor <= value / divisor; ++divisor) {
    if (value % divisor != 0) continue;
    for (std::int64_t candidate : {divisor, value / divisor}) {
      if (candidate < wanted && candidate > below) below = candidate;
      if (candidate > wanted && candidate < above) above = candidate;
    }
  }
  if (wanted > value) return std::to_string(value);
  return std::to_string(below) + " or " + std::to_string(above);
}

}  // namespace assay::spec
