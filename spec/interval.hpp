#pragma once
// Arithmetic on what printed numbers leave open: every number between two ends. The ends are rounded as
// doubles are, not outward, so compare with a few units of 2^-52 to spare.
#include <algorithm>
#include <cmath>

#include "spec/error.hpp"

namespace assay::spec {

/// All numbers x with low <= x <= high. Domain: low <= high, no NaN.
struct Interval {
  double low = 0, high = 0;

  bool holds(double number) const { return low <= number && number <= high; }
  bool meets(const Interval& other) const { return low <= other.high && other.low <= high; }
  double middle() const { return low + (high - low) / 2; }
  bool operator==(const Interval&) const = default;
};

inline Interval exact_interval(double number) { return {number, number}; }
inline Interval operator+(Interval a, Interval b) { return {a.low + b.low, a.high + b.high}; }
inline Interval operator-(Interval a, Interval b) { return {a.low - b.high, a.high - b.low}; }
inline Interval operator*(Interval a, Interval b) {
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}
/// Errors: SpecError interval_c1, `b` holds zero.
inline Interval operator/(Interval a, Interval b) {
  if (b.holds(0))
    throw SpecError("interval_c1", "a divisor between " + std::to_string(b.low) + " and " +
                                       std::to_string(b.high) + " may be zero");
  return a * Interval{1 / b.high, 1 / b.low};
}

}  // namespace assay::spec
