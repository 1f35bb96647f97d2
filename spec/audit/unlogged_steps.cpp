#include "spec/audit/unlogged_steps.hpp"

#include <algorithm>

namespace assay::spec::audit {

double least_without_logging(double seconds) {
  if (!(seconds > longest_logging)) return 0;
  return 1 - std::max(most_of_logging, longest_logging / seconds);
}

Interval hull(const std::vector<Interval>& numbers) {
  Interval out = numbers.front();
  for (const Interval& number : numbers)
    out = {std::min(out.low, number.low), std::max(out.high, number.high)};
  return out;
}

double apart(const std::vector<Interval>& numbers) {
  const Interval all = hull(numbers);
  if (numbers.size() < fewest_to_tell) return all.high - all.low;
  double most = all.low;
  for (const Interval& number : numbers) most = std::max(most, number.low);
  return most - all.low;
}

std::optional<Interval> left_out_times(const std::vector<Interval>& shown) {
  if (shown.size() < fewest_of_excerpt) return std::nullopt;
  const Interval seen = hull(shown);
  const double open = shown.size() < fewest_to_tell ? told_by_few : 0, spread = apart(shown);
  return Interval{std::max(0.0, seen.low * (1 - open) - spread), seen.high * (1 + open) + spread};
}

std::optional<Interval> unlogged_times(const std::vector<Interval>& logged) {
  auto out = left_out_times(logged);
  if (!out) return out;
  const double least = hull(logged).low;
  out->low = std::max(0.0, out->low - least * (1 - least_without_logging(least)));
  return out;
}

Interval told_by_one(Interval logged) {
  return {logged.low * std::min(1 / half_way_to_twice, least_without_logging(logged.low)),
          logged.high * half_way_to_twice};
}

}  // namespace assay::spec::audit
