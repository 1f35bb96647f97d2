#include "spec/random/stochastic_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::spec::random {

double stochastic_bf16_of_real(double value, std::uint16_t random) {
  constexpr int least_exponent = -126, kept_bits = 7;
  constexpr double largest = 0x1.FEp127;
  const double size = std::abs(value);
  if (!std::isfinite(value) || size == 0) return value;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(size), least_exponent) - kept_bits);
  const double units = size / unit, below = std::floor(units);
  const bool away = units - below + random * 0x1p-16 >= 1;
  const double rounded = (away ? below + 1 : below) * unit;
  return std::copysign(rounded > largest ? std::numeric_limits<double>::infinity() : rounded, value);
}

}  // namespace assay::spec::random
