// labels: unit golden
#include "spec/random/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace assay::spec::random::philox_test {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// Random123 1.14.0, tests/kat_vectors, "philox4x32 10".
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsPlaceSeedSiteStreamAndIndexInKeyAndCounter) {
  const std::uint64_t seed = 0x299f31d0a4093822, index = 0x85a308d3243f6a88;
  const Words words =
      philox({0x243f6a88, 0x85a308d3, 7, static_cast<std::uint32_t>(Site::test)}, {0xa4093822, 0x299f31d0});
  EXPECT_EQ(Stream(seed, Site::test, 7).bits(index), std::uint64_t{words[1]} << 32 | words[0]);
}

constexpr std::uint64_t draws = 200000;
constexpr double deviations =
    5;  // false alarm below 1e-6 per statistic; the numbers are fixed, so it is decided once

TEST(Philox, UniformIsOpenAndHasTheMomentsOfTheUniform) {
  const Stream stream(1, Site::test, 0);
  double sum = 0, square = 0;
  std::vector<int> cells(64);
  for (std::uint64_t i = 0; i < draws; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    square += u * u;
    ++cells[static_cast<std::size_t>(u * 64)];
  }
  // Var u = 1/12, Var u^2 = 1/5 - 1/9.
  EXPECT_NEAR(sum / draws, 0.5, deviations * std::sqrt(1.0 / 12 / draws));
  EXPECT_NEAR(square / draws, 1.0 / 3, deviations * std::sqrt((1.0 / 5 - 1.0 / 9) / draws));
  double chi_square = 0;
  for (int count : cells) chi_square += std::pow(count - draws / 64.0, 2) / (draws / 64.0);
  EXPECT_NEAR(chi_square, 63, deviations * std::sqrt(2 * 63.0));
}

TEST(Philox, NormalHasTheMomentsOfTheNormal) {
  const Stream stream(1, Site::parameter, 3);
  double moments[5] = {};
  for (std::uint64_t i = 0; i < draws; ++i) {
    double power = 1;
    for (double& moment : moments) moment += power / draws, power *= stream.normal(i);
  }
  // E x^2k = (2k - 1)!!, so Var x = 1, Var x^2 = 2, Var x^3 = 15, Var x^4 = 105 - 9.
  EXPECT_NEAR(moments[1], 0, deviations * std::sqrt(1.0 / draws));
  EXPECT_NEAR(moments[2], 1, deviations * std::sqrt(2.0 / draws));
  EXPECT_NEAR(moments[3], 0, deviations * std::sqrt(15.0 / draws));
  EXPECT_NEAR(moments[4], 3, deviations * std::sqrt(96.0 / draws));
}

TEST(Philox, NeighbouringNormalsAreUncorrelated) {
  const Stream stream(1, Site::parameter, 3), next_stream(1, Site::parameter, 4),
      next_seed(2, Site::parameter, 3);
  double index = 0, streams = 0, seeds = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    index += stream.normal(i) * stream.normal(i + 1) / draws;
    streams += stream.normal(i) * next_stream.normal(i) / draws;
    seeds += stream.normal(i) * next_seed.normal(i) / draws;
  }
  for (double correlation : {index, streams, seeds})
    EXPECT_NEAR(correlation, 0, deviations / std::sqrt(draws));
}

TEST(Philox, EverySeedSiteStreamAndIndexHasItsOwnBits) {
  std::set<std::uint64_t> seen;
  std::size_t asked = 0;
  for (std::uint64_t seed : {0, 1})
    for (Site site :
         {Site::parameter, Site::sample_order, Site::grammar, Site::generation, Site::test, Site::rounding})
      for (std::uint32_t stream : {0u, 1u, 0xffffffffu})
        for (std::uint64_t index : {0ull, 1ull, 1ull << 32, ~0ull}) {
          seen.insert(Stream(seed, site, stream).bits(index));
          ++asked;
        }
  EXPECT_EQ(seen.size(), asked);  // a collision of 144 random 64-bit words has probability below 1e-15
}

TEST(Philox, BelowStaysBelowAndReachesEveryValue) {
  const Stream stream(1, Site::test, 1);
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++counts.at(stream.below(i, 7));
  for (int count : counts) EXPECT_NEAR(count, 1000, deviations * std::sqrt(7000 * (1.0 / 7) * (6.0 / 7)));
  EXPECT_EQ(stream.below(5, 1), 0u);
  EXPECT_LT(stream.below(5, ~0ull), ~0ull);
}

}  // namespace
}  // namespace assay::spec::random::philox_test
