#pragma once
// Axes of a chart: a range that covers the data, ticks at round numbers.
#include <string>
#include <vector>

namespace assay::impl::report {

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;        ///< multiples of 1, 2 or 5 times a power of ten, within [low, high]
  std::vector<std::string> labels;  ///< of the ticks, all with the same number of digits

  /// Position of `value` between 0 (low) and 1 (high).
  double position(double value) const { return (value - low) / (high - low); }
};

/// An axis from `low` to `high`, widened to the ticks' spacing when `round_ends`, with about `wanted` ticks.
/// Domain: finite, low <= high; an empty range is widened. wanted >= 2.
Axis make_axis(double low, double high, int wanted, bool round_ends);

}  // namespace assay::impl::report
