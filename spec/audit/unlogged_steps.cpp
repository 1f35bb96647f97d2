#include "spec/audit/unlogged_steps.hpp"

#include <algorithm>

namespace assay::spec::audit {

std::optional<Interval> unlogged_mean(const std::vector<double>& logged) {
  if (logged.size() < fewest_to_tell) return std::nullopt;
  const auto [least, most] = std::minmax_element(logged.begin(), logged.end());
  const double spread = *most - *least;
  return Interval{std::max(0.0, *least - spread), *most + spread};
}

}  // namespace assay::spec::audit
