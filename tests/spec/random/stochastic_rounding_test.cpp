// labels: unit property
#include "spec/random/stochastic_rounding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::spec::random::stochastic_rounding_test {
namespace {

constexpr int draws = 1 << 16;  // every value that the random bits can have

/// Any finite number, all sizes alike, subnormal ones included.
float draw_float() {
  const auto bits = *rc::gen::arbitrary<std::uint32_t>();
  const float value = std::bit_cast<float>(bits);
  return std::isfinite(value) ? value : std::bit_cast<float>(bits & 0x807FFFFF);
}

RC_GTEST_PROP(StochasticRounding, BitsAndRealNumbersAgree, ()) {
  const float value = draw_float();
  for (int i = 0; i < 64; ++i) {
    const auto random = *rc::gen::arbitrary<std::uint16_t>();
    RC_ASSERT(static_cast<double>(bf16_value(stochastic_bf16(value, random))) ==
              stochastic_bf16_of_real(value, random));
  }
}

RC_GTEST_PROP(StochasticRounding, TheMeanOverAllRandomBitsIsTheNumberItself, ()) {
  const float value = draw_float();
  RC_PRE(std::abs(value) < 0x1.FEp127f);
  double sum = 0;  // of 2^16 numbers with 8 bits and at most two exponents: exact
  for (int random = 0; random < draws; ++random)
    sum += static_cast<double>(bf16_value(stochastic_bf16(value, static_cast<std::uint16_t>(random))));
  RC_ASSERT(sum / draws == static_cast<double>(value));
}

RC_GTEST_PROP(StochasticRounding, GivesOneOfTheTwoNeighbours, ()) {
  const float value = draw_float();
  const auto random = *rc::gen::arbitrary<std::uint16_t>();
  const auto cut = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const std::uint16_t rounded = stochastic_bf16(value, random);
  RC_ASSERT(rounded == cut || (rounded == cut + 1 && bf16_value(cut) != value));
}

RC_GTEST_PROP(StochasticRounding, LargerNumbersAreNeverRoundedLower, ()) {
  const double a = draw_float(), b = *rc::gen::arbitrary<bool>() ? draw_float() : a * (1 + 0x1p-9);
  const auto random = *rc::gen::arbitrary<std::uint16_t>();
  RC_ASSERT(stochastic_bf16_of_real(std::min(a, b), random) <=
            stochastic_bf16_of_real(std::max(a, b), random));
}

TEST(StochasticRounding, NumbersThatBf16HasStay) {
  for (const std::uint16_t random : {0x0000, 0x8000, 0xFFFF})
    for (const float value : {0.0f, -0.0f, 1.0f, -1.5f, 0x1.FEp127f, 0x1p-133f})
      EXPECT_EQ(std::bit_cast<std::uint32_t>(bf16_value(stochastic_bf16(value, random))),
                std::bit_cast<std::uint32_t>(value));
}

TEST(StochasticRounding, BeyondTheLargestLiesInfinityAndWhatIsNotFiniteStays) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), beyond = 0x1.FFp127f;
  EXPECT_EQ(bf16_value(stochastic_bf16(beyond, 0xFFFF)), infinity);
  EXPECT_EQ(stochastic_bf16_of_real(beyond, 0xFFFF), infinity);
  EXPECT_EQ(bf16_value(stochastic_bf16(beyond, 0)), 0x1.FEp127f);
  for (const std::uint16_t random : {0x0000, 0xFFFF}) {
    EXPECT_EQ(bf16_value(stochastic_bf16(-infinity, random)), -infinity);
    EXPECT_TRUE(std::isnan(bf16_value(stochastic_bf16(std::bit_cast<float>(0x7F800001u), random))));
  }
}

/// 1 - 2^-12 lies a sixteenth of a unit below 1: 1 in 16 of all random bits take it down.
TEST(StochasticRounding, RoundsDownAsOftenAsThePartThatIsCutSays) {
  int down = 0;
  for (int random = 0; random < draws; ++random)
    down += bf16_value(stochastic_bf16(1 - 0x1p-12f, static_cast<std::uint16_t>(random))) == 1 - 0x1p-8f;
  EXPECT_EQ(down, draws / 16);
}

}  // namespace
}  // namespace assay::spec::random::stochastic_rounding_test
