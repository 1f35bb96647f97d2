// labels: unit
#include "spec/count.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "spec/error.hpp"

namespace assay::count_test {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(Count, HoldsTheFlopsOfARunThatSixtyFourBitsCannot) {
  EXPECT_EQ((6 * Count(8'000'000'000) * 15'000'000'000'000).to_string(), "720000000000000000000000");
}

TEST(Count, C1RejectsNegativesAndOverflow) {
  EXPECT_THROW(Count(-1), SpecError);
  EXPECT_THROW(Count(1) - 2, SpecError);
  const Count square = Count(largest) * largest;
  EXPECT_THROW(square * largest, SpecError);
  EXPECT_THROW(square * 4 + square * 4, SpecError);
  EXPECT_THROW(square.to_int64(), SpecError);
}

TEST(Count, C2RejectsRemainders) {
  EXPECT_EQ(Count(12).divided_exactly_by(4), Count(3));
  EXPECT_THROW(Count(12).divided_exactly_by(5), SpecError);
  EXPECT_THROW(Count(12).divided_exactly_by(0), SpecError);
}

TEST(Count, PrintsZero) { EXPECT_EQ(Count().to_string(), "0"); }

}  // namespace
}  // namespace assay::count_test
