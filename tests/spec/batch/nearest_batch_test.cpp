// labels: unit property
#include "spec/batch/nearest_batch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::spec::nearest_batch_test {
namespace {

TEST(NearestBatchSpec, NamesBothNeighbours) {
  EXPECT_EQ(nearest_multiples(36, 8), "32 or 40");
  EXPECT_EQ(nearest_multiples(3, 8), "8");
  EXPECT_EQ(nearest_divisors(32, 5), "4 or 8");
  EXPECT_EQ(nearest_divisors(36, 7), "6 or 9");
  EXPECT_EQ(nearest_divisors(13, 5), "1 or 13");
  EXPECT_EQ(nearest_divisors(12, 40), "12");
  EXPECT_EQ(divisors(36), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 9, 12, 18, 36}));
  EXPECT_EQ(nearest_of({2, 4, 8}, 4), "4 or 8");
  EXPECT_EQ(nearest_of({2, 4, 8}, 1), "2");
  EXPECT_EQ(nearest_of({}, 1), "");
}

RC_GTEST_PROP(NearestBatchSpec, DivisorsAreThoseOfTheWholeSearch, ()) {
  const std::int64_t value = *rc::gen::inRange(2, 400),
                     wanted = *rc::gen::inRange<std::int64_t>(2, value + 1);
  RC_PRE(value % wanted != 0);
  std::int64_t below = wanted, above = wanted;
  while (value % below != 0) --below;
  while (value % above != 0) ++above;
  RC_ASSERT(nearest_divisors(value, wanted) == std::to_string(below) + " or " + std::to_string(above));
}

}  // namespace
}  // namespace assay::spec::nearest_batch_test
