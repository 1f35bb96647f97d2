#pragma once
// Stochastic rounding to bf16. A number is rounded away from zero with the probability of the part that is
// cut off. So the expected result is the number itself, and changes below one unit in the last place (ulp)
// add up over many steps. Source: Gupta et al., "Deep learning with limited numerical precision", ICML 2015,
// section 3.
#include <bit>
#include <cstdint>

namespace assay::spec::random {

/// The bits of the bf16 number that `value` becomes: of its two neighbours the one farther from zero when the
/// cut-off fraction of a unit, in 2^-16, and the 16 random bits together reach one unit. Exact numbers stay;
/// beyond the largest bf16 number lies infinity. Infinity and NaN stay what they are.
constexpr std::uint16_t stochastic_bf16(float value, std::uint16_t random) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t exponent = 0x7F800000, quiet = 0x0040;
  const auto cut = static_cast<std::uint16_t>(bits >> 16);
  if ((bits & exponent) == exponent)
    return static_cast<std::uint16_t>((bits & ~exponent) << 1 != 0 ? cut | quiet : cut);
  return static_cast<std::uint16_t>((bits + random) >> 16);
}

/// The same as arithmetic of real numbers, for any finite double: what stochastic_bf16 is tested against.
/// Monotone in `value` for given random bits.
double stochastic_bf16_of_real(double value, std::uint16_t random);

/// The number that 16 bits stand for.
constexpr float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace assay::spec::random
