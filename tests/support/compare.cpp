#include "tests/support/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

namespace assay::tests {

namespace {
std::string text(const std::vector<std::int64_t>& shape) {
  std::ostringstream out;
  out << "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  return out.str() + "]";
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<double> bounds(const Values& expected, const Allowed& allowed) {
  if (!allowed.absolute.empty()) return allowed.absolute;
  double largest = 0;
  for (double value : expected.data) largest = std::max(largest, std::abs(value));
  return std::vector<double>(expected.data.size(), allowed.relative_to_largest * largest);
}

double share(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
}
}  // namespace

testing::AssertionResult close(const Values& actual, const Values& expected, const Allowed& allowed,
                               bool zeros_expected) {
  const auto fail = [] { return testing::AssertionFailure(); };
  if (actual.shape != expected.shape)
    return fail() << "shapes differ: actual " << text(actual.shape) << ", expected " << text(expected.shape);
  for (const Values* side : {&actual, &expected}) {
    if (product(side->shape) != static_cast<std::int64_t>(side->data.size()))
      return fail() << side->data.size() << " values for shape " << text(side->shape);
  }
  const std::vector<double> bound = bounds(expected, allowed);
  if (bound.size() != expected.data.size())
    return fail() << bound.size() << " bounds for " << expected.data.size() << " values";

  double worst = -1;
  std::size_t worst_at = 0, zeros = 0, beyond = 0;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (!std::isfinite(actual.data[i]) || !std::isfinite(expected.data[i]))
      return fail() << "not finite at " << i << ": actual " << actual.data[i] << ", expected "
                    << expected.data[i];
    if (!(bound[i] >= 0) || std::isinf(bound[i]))
      return fail() << "bound " << bound[i] << " at " << i << " is no bound";
    zeros += expected.data[i] == 0;
    const double used = share(std::abs(actual.data[i] - expected.data[i]), bound[i]);
    beyond += used > 1;
    if (used > worst) worst = used, worst_at = i;
  }
  if (!zeros_expected && bound.size() > 8 && zeros * 8 > bound.size() * 7)
    return fail() << zeros << " of " << bound.size()
                  << " expected values are zero: this comparison proves nothing";
  if (beyond > 0) {
    std::ostringstream out;
    out.precision(17);
    out << beyond << " of " << bound.size() << " values beyond their bound; worst at " << worst_at << " of "
        << text(expected.shape) << ": actual " << actual.data[worst_at] << ", expected "
        << expected.data[worst_at] << ", allowed " << bound[worst_at] << " (" << worst
        << " times the allowance)";
    return fail() << out.str();
  }
  return testing::AssertionSuccess() << "largest error is " << std::max(worst, 0.0) << " of the allowance";
}

double largest_share(const Values& actual, const Values& expected, const Allowed& allowed) {
  const std::vector<double> bound = bounds(expected, allowed);
  double worst = 0;
  for (std::size_t i = 0; i < bound.size(); ++i)
    worst = std::max(worst, share(std::abs(actual.data.at(i) - expected.data.at(i)), bound[i]));
  return worst;
}

}  // namespace assay::tests
