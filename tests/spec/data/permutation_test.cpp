// labels: unit property
#include "spec/data/permutation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec::data::permutation_test {
namespace {

std::vector<std::int64_t> images(const Permutation& permutation) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < permutation.size(); ++i) out.push_back(permutation(i));
  return out;
}

bool covers_all(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

TEST(PermutationSpec, C1RejectsAnEmptyOrHugeSet) {
  EXPECT_THROW(Permutation(1, 0, 0), SpecError);
  EXPECT_THROW(Permutation(1, 0, -3), SpecError);
  EXPECT_THROW(Permutation(1, 0, (std::int64_t{1} << 62) + 1), SpecError);
  EXPECT_NO_THROW(Permutation(1, 0, std::int64_t{1} << 62));
}

TEST(PermutationSpec, C2RejectsAnEpochOutsideThirtyTwoBits) {
  EXPECT_THROW(Permutation(1, -1, 5), SpecError);
  EXPECT_THROW(Permutation(1, std::int64_t{1} << 32, 5), SpecError);
  EXPECT_NO_THROW(Permutation(1, (std::int64_t{1} << 32) - 1, 5));
}

TEST(PermutationSpec, C3RejectsAPositionOutsideTheSet) {
  const Permutation permutation(1, 0, 5);
  for (std::int64_t outside : {-1, 5}) {
    EXPECT_THROW(permutation(outside), SpecError);
    EXPECT_THROW(permutation.inverse(outside), SpecError);
  }
}

TEST(PermutationSpec, EverySizeUpToThreeHundredIsABijection) {
  for (std::int64_t n = 1; n <= 300; ++n) EXPECT_TRUE(covers_all(images(Permutation(20251121, 3, n)))) << n;
}

TEST(PermutationSpec, PowersOfTwoAndTheirNeighboursAreBijections) {
  for (int power = 1; power <= 16; ++power)
    for (std::int64_t n :
         {(std::int64_t{1} << power) - 1, std::int64_t{1} << power, (std::int64_t{1} << power) + 1})
      EXPECT_TRUE(covers_all(images(Permutation(7, 0, n)))) << n;
}

RC_GTEST_PROP(PermutationSpec, DrawnSizesAreBijections, (std::uint64_t seed)) {
  const auto n = *rc::gen::inRange<std::int64_t>(1, 3000);
  const auto epoch = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 32);
  RC_ASSERT(covers_all(images(Permutation(seed, epoch, n))));
}

// A set test is out of reach for large n; a two-sided inverse on drawn elements is what a bijection has.
RC_GTEST_PROP(PermutationSpec, LargeSizesHaveATwoSidedInverse, (std::uint64_t seed)) {
  const auto power = *rc::gen::inRange(13, 63);
  const auto n = std::min(
      std::int64_t{1} << 62,
      (std::int64_t{1} << (power - 1)) + *rc::gen::inRange<std::int64_t>(-1, std::int64_t{1} << (power - 1)));
  const auto x = *rc::gen::inRange<std::int64_t>(0, n);
  const Permutation permutation(seed, 0, n);
  for (const std::int64_t element : {x, std::int64_t{0}, n - 1}) {
    const std::int64_t image = permutation(element);
    RC_ASSERT(image >= 0 && image < n);
    RC_ASSERT(permutation.inverse(image) == element);
    RC_ASSERT(permutation(permutation.inverse(element)) == element);
  }
}

TEST(PermutationSpec, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const auto order = images(Permutation(1, 0, 100));
  EXPECT_EQ(images(Permutation(1, 0, 100)), order);
  EXPECT_NE(images(Permutation(1, 1, 100)), order);
  EXPECT_NE(images(Permutation(2, 0, 100)), order);
  EXPECT_EQ(sample_at(1, 0, 17, 100), order[17]);
}

// Over epochs each sample must stand at each position equally often. With E epochs a cell counts Binomial(E,
// 1/n); 5 standard deviations hold for all cells at once with probability above 0.9999, and the seed is
// fixed.
TEST(PermutationSpec, EverySampleTakesEveryPositionEquallyOften) {
  for (std::int64_t n : {2, 3, 4, 5, 10}) {
    constexpr std::int64_t epochs = 4000;
    std::map<std::pair<std::int64_t, std::int64_t>, double> counts;
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
      for (std::int64_t i = 0; i < n; ++i) counts[{i, sample_at(5, epoch, i, n)}] += 1;
    const double p = 1.0 / static_cast<double>(n), sd = std::sqrt(epochs * p * (1 - p));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        EXPECT_NEAR((counts[{i, j}]), epochs * p, 5 * sd) << n << " " << i << " " << j;
  }
}

}  // namespace
}  // namespace assay::spec::data::permutation_test
