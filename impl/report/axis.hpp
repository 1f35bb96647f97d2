#pragma once
// Axes of a chart: a range that covers the data, ticks at round numbers.
#include <cmath>
#include <string>
#include <vector>

namespace assay::impl::report {

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;        ///< multiples of 1, 2 or 5 times a power of ten, within [low, high]
  std::vector<std::string> labels;  ///< of the ticks, all with the same number of digits
  bool logarithmic = false;

  /// Position of `value` between 0 (low) and 1 (high).
  double position(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

/// An axis from `low` to `high`, widened to the ticks' spacing when `round_ends`, with about `wanted` ticks.
/// Domain: finite, low <= high; an empty range, or one of rounding errors, is widened. wanted >= 2.
Axis make_axis(double low, double high, int wanted, bool round_ends);

/// A logarithmic axis over [low, high], widened to its ticks: powers of ten, and 2 and 5 times these where
/// there are few. Domain: finite, 0 < low <= high.
Axis make_log_axis(double low, double high);

}  // namespace assay::impl::report
