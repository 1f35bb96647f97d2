// labels: unit property
#include "spec/random/box_muller.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace assay::spec::random::box_muller_test {
namespace {

/// Wider than double where long double is, as on x86-64; else the error of that machine's library is added.
constexpr long double pi = 3.141592653589793238462643383279502884L;

double relative_error(double got, long double right) {
  return static_cast<double>(std::fabs((got - right) / right));
}

/// A double of any size in (0, 1), not only the common ones near 1.
double draw_unit() {
  const double mantissa = open_unit(*rc::gen::arbitrary<std::uint64_t>());
  return std::ldexp(std::min(mantissa, 1 - 0x1p-53), -*rc::gen::inRange(0, 54));
}

RC_GTEST_PROP(BoxMuller, LogarithmHasTheStatedError, ()) {
  const double u = draw_unit();
  RC_ASSERT(relative_error(logarithm(u), std::log(static_cast<long double>(u))) < 0x1p-50);
}

TEST(BoxMuller, LogarithmHasTheStatedErrorBesideOneAndWhereTheRangeIsCut) {
  for (const double around : {1.0, std::sqrt(0.5), 0.5, 0.25})
    for (int ulps = -40; ulps <= 40; ++ulps) {
      const double u = around * (1 + ulps * 0x1p-52);
      if (u == 1 || u > 1) continue;
      EXPECT_LT(relative_error(logarithm(u), std::log(static_cast<long double>(u))), 0x1p-50) << u;
    }
  EXPECT_EQ(logarithm(1), 0);
}

RC_GTEST_PROP(BoxMuller, CosineHasTheStatedError, ()) {
  const double v = open_unit(*rc::gen::arbitrary<std::uint64_t>());
  // The quarter turn nearest to v is taken off exactly: near its zeros a cosine of the product 2 pi v would
  // err.
  const int q = static_cast<int>(4 * v + 0.5);  // NOLINT(bugprone-incorrect-roundings)
  const long double rest = (4 * static_cast<long double>(v) - q) * (pi / 2);
  const long double size = q % 2 == 0 ? std::cos(rest) : std::sin(rest);
  RC_PRE(size != 0);
  RC_ASSERT(relative_error(cosine_of_turns(v), q == 1 || q == 2 ? -size : size) < 0x1p-50);
  RC_ASSERT(std::fabs(cosine_of_turns(v) - std::cos(2 * pi * v)) < 0x1p-50);
}

TEST(BoxMuller, CosineOfWholeQuartersIsExact) {
  const double expected[] = {1, 0, -1, 0, 1};
  for (int q = 0; q <= 4; ++q) EXPECT_EQ(cosine_of_turns(0.25 * q), expected[q]) << q;
  EXPECT_NEAR(cosine_of_turns(1.0 / 3), -0.5, 0x1p-51);
  EXPECT_NEAR(cosine_of_turns(1.0 / 8), std::sqrt(0.5), 0x1p-51);
  EXPECT_NEAR(cosine_of_turns(5.0 / 8), -std::sqrt(0.5), 0x1p-51);
}

TEST(BoxMuller, UnitsAreOpenBelow) {
  EXPECT_EQ(open_unit(0), 0x1p-54);
  EXPECT_EQ(open_unit(~std::uint64_t{0}), 1);  // 2^53 - 1/2 has no double of its own
  EXPECT_EQ(open_unit(std::uint64_t{1} << 62), 0.25 + 0x1p-54);
}

/// The same on every machine, to the last bit: what makes initial weights a pure function of the seed.
TEST(BoxMuller, NormalsHaveTheseBits) {
  const Stream stream(7, Site::parameter, 3);
  const std::uint64_t bits[] = {0xbfe0c1b80f7255f8, 0x3fba55c56809c699, 0x3fb881bb553814b2,
                                0xbfd77537589873a3};
  for (std::uint64_t i = 0; i < std::size(bits); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(stream.normal(i)), bits[i])
        << i << std::hexfloat << stream.normal(i);
}

}  // namespace
}  // namespace assay::spec::random::box_muller_test
