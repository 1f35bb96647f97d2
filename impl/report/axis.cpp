#include "impl/report/axis.hpp"

#include <algorithm>
#include <cmath>

#include "spec/text/quantity.hpp"

namespace assay::impl::report {
namespace {

/// The least of 1, 2, 5 times a power of ten that is not below `least`.
double round_spacing(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  // A hair of slack: 10^log10(x) may come out just above x.
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

std::string label(double value, double spacing, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e4) {
    static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
    int prefix = 0;
    while (largest >= 1000 && prefix < 5) {
      largest /= 1000;
      value /= 1000;
      spacing /= 1000;
      ++prefix;
    }
    const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(spacing) - 1e-9)));
    return spec::fixed(value, digits) + prefixes[prefix];
  }
  if (spacing < 1e-4) return spec::scientific(value, largest / spacing > 9.5 ? 1 : 0);
  return spec::fixed(value, std::max(0, static_cast<int>(std::ceil(-std::log10(spacing) - 1e-9))));
}

}  // namespace

Axis make_axis(double low, double high, int wanted, bool round_ends) {
  // Values that differ in their last digits alone: ticks between them would be the same number.
  if (high - low <= 1e-9 * std::max(std::fabs(low), std::fabs(high))) {
    const double room = low == 0 ? 1 : std::fabs(low) * 0.1;
    low -= room;
    high += room;
  }
  const double spacing = round_spacing((high - low) / wanted);
  Axis axis;
  axis.low = round_ends ? std::floor(low / spacing + 1e-9) * spacing : low;
  axis.high = round_ends ? std::ceil(high / spacing - 1e-9) * spacing : high;
  const double largest = std::max(std::fabs(axis.low), std::fabs(axis.high));
  for (double index = std::ceil(axis.low / spacing - 1e-9); index * spacing <= axis.high + spacing * 1e-9;
       ++index) {
    axis.ticks.push_back(index * spacing);
    axis.labels.push_back(label(index * spacing, spacing, largest));
  }
  return axis;
}

Axis make_log_axis(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9)),
            last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const int decades = std::max(1, last - first);
  const std::vector<double> factors = decades <= 3 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  const int stride = 1 + decades / 8;
  std::vector<double> all;
  for (int decade = first; decade <= first + decades; decade += stride)
    for (const double factor : factors)
      if (decade < first + decades || factor == 1) all.push_back(factor * std::pow(10.0, decade));
  if (all.back() < high) all.push_back(std::pow(10.0, last));
  Axis axis;
  axis.logarithmic = true;
  // From the last tick that is not above to the first that is not below.
  std::size_t begin = 0, end = all.size() - 1;
  while (begin + 1 < end && all[begin + 1] <= low * (1 + 1e-9)) ++begin;
  while (end > begin + 1 && all[end - 1] >= high * (1 - 1e-9)) --end;
  axis.low = all[begin], axis.high = all[end];
  for (std::size_t i = begin; i <= end; ++i) {
    axis.ticks.push_back(all[i]);
    axis.labels.push_back(all[i] >= 1e4 || all[i] < 1e-3 ? spec::scientific(all[i], 0)
                                                         : label(all[i], all[i], 1));
  }
  return axis;
}

}  // namespace assay::impl::report
