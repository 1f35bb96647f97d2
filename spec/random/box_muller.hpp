#pragma once
// A normal number from four random words, in operations that IEEE 754 rounds exactly (+ - * / and, by the
// caller, sqrt): the same bits on every processor and GPU, whatever its library of functions. To be compiled
// without contraction to fused multiply-adds (cmake/AssaySpec.cmake, cmake/AssayImpl.cmake).
//
// Equation: n = sqrt(-2 ln u) cos(2 pi v).  Source: Box, Muller, "A note on the generation of random normal
// deviates", Ann. Math. Statist. 29 (1958). Logarithm and cosine are Taylor polynomials on a reduced range;
// each has a relative error below 2^-50 (tests/spec/random/box_muller_test.cpp).
#include <bit>
#include <cstdint>
#include <numbers>

#include "spec/random/philox.hpp"

namespace assay::spec::random {

/// In (0, 1]: (53-bit integer + 1/2) * 2^-53, rounded once; 1 for the largest integer.
constexpr double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

constexpr std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}

/// ln u for normal u > 0. u = 2^k m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh s = 2 (s + s^3/3 + ...)
/// with s = (m - 1) / (m + 1), |s| < 0.172: the terms from s^23 on are below 2^-58 of the first.
constexpr double logarithm(double u) {
  constexpr std::uint64_t root_of_half = 0x3FE6A09E667F3BCD;  // bits of sqrt(1/2)
  const auto bits = std::bit_cast<std::uint64_t>(u);
  const std::int64_t k = static_cast<std::int64_t>(bits - root_of_half) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(k) << 52));
  const double s = (m - 1) / (m + 1), z = s * s;
  constexpr double terms[] = {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                              1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
  double sum = 1.0 / 21;
  for (const double term : terms) sum = sum * z + term;
  return static_cast<double>(k) * std::numbers::ln2 + 2 * (s + s * (z * sum));
}

/// cos(2 pi v) for v in [0, 1]: the quarter turn q nearest to 4 v is taken off exactly; of the rest, at most
/// an eighth of a turn, sine or cosine. The first term left out is below 2^-56 of the result.
constexpr double cosine_of_turns(double v) {
  const double quarters = 4 * v;
  const int q =
      static_cast<int>(quarters + 0.5);  // NOLINT(bugprone-incorrect-roundings): of a tie either will do
  const double x = (quarters - q) * (std::numbers::pi / 2), z = x * x;
  // Nested, innermost first: 1 - z / (2 * 1) (1 - z / (4 * 3) (...)), and with 3 * 2, 5 * 4, ... for the
  // sine.
  constexpr double for_sine[] = {1.0 / (17 * 16), 1.0 / (15 * 14), 1.0 / (13 * 12), 1.0 / (11 * 10),
                                 1.0 / (9 * 8),   1.0 / (7 * 6),   1.0 / (5 * 4),   1.0 / (3 * 2)};
  constexpr double for_cosine[] = {1.0 / (16 * 15), 1.0 / (14 * 13), 1.0 / (12 * 11), 1.0 / (10 * 9),
                                   1.0 / (8 * 7),   1.0 / (6 * 5),   1.0 / (4 * 3),   1.0 / (2 * 1)};
  const bool odd = q % 2 != 0;
  double nested = 1;
  for (int i = 0; i < 8; ++i) nested = 1 - nested * (z * (odd ? for_sine[i] : for_cosine[i]));
  const double size = odd ? x * nested : nested;
  return q == 1 || q == 2 ? -size : size;
}

/// -2 ln u of the first two words: the square of the radius.
constexpr double squared_radius(const Words& words) {
  return -2 * logarithm(open_unit(join(words[0], words[1])));
}
/// cos(2 pi v) of the last two.
constexpr double direction(const Words& words) {
  return cosine_of_turns(open_unit(join(words[2], words[3])));
}

}  // namespace assay::spec::random
