#include "spec/batch/nearest_batch.hpp"

#include <algorithm>

namespace assay::spec {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0) continue;
    found.push_back(divisor);
    if (divisor != number / divisor) found.push_back(number / divisor);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string nearest_of(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  const auto above = std::upper_bound(values.begin(), values.end(), wanted);
  std::string text;
  if (above != values.begin()) text = std::to_string(*(above - 1));
  if (above != values.end()) text += (text.empty() ? "" : " or ") + std::to_string(*above);
  return text;
}

std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit, above = below + unit;
  return below == 0 ? std::to_string(above) : std::to_string(below) + " or " + std::to_string(above);
}

std::string nearest_divisors(std::int64_t value, std::int64_t wanted) {
  return nearest_of(divisors(value), wanted);
}

}  // namespace assay::spec
