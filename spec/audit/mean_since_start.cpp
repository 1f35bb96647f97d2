#include "spec/audit/mean_since_start.hpp"

#include <cmath>
#include <vector>

#include "spec/audit/relations.hpp"
#include "spec/audit/unlogged_steps.hpp"

namespace assay::spec::audit {

std::optional<double> multiple_of_mean_since_start(const Evidence& e) {
  constexpr double as_near = 0.005;   // chosen, with `one_of`: so far no digits of a rate hide another one
  constexpr std::size_t one_of = 20;  // lines that may say something else
  std::vector<Interval> multiples;
  bool moves = false;
  const Printed* first = nullptr;
  for (const Step* step : e.steps) {
    const auto &rate = (*step)[Field::tokens_per_second], &elapsed = (*step)[Field::elapsed],
               &total = (*step)[Field::tokens_total];
    if (!usable(rate) || !usable(elapsed) || !usable(total)) continue;
    if (!first) first = &*rate;
    moves = moves || rate->value != first->value;
    multiples.push_back(wide(*rate) * wide(*elapsed) / wide(*total));
  }
  // One rate on every line is no mean that anything was seen to move.
  if (multiples.size() < fewest_to_tell || !moves) return std::nullopt;
  const Shared shared = shared_factor(multiples);
  if ((multiples.size() - shared.ratios) * one_of > multiples.size()) return std::nullopt;
  const double x = shared.factor.middle(), whole = x < 1 ? 1 / std::round(1 / x) : std::round(x);
  const bool narrow = shared.factor.high <= shared.factor.low * (1 + as_near);
  if (!narrow || std::abs(x / whole - 1) > as_near) return std::nullopt;
  return whole;
}

}  // namespace assay::spec::audit
