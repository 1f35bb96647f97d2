// labels: unit
#include "tests/support/advice.hpp"

#include <gtest/gtest.h>

namespace assay::tests::advice_test {
namespace {

using Ways = std::vector<Way>;

TEST(AdviceSupport, ReadsEveryWay) {
  EXPECT_EQ(
      ways_of("c2: x = 3: y; this run has 4 ranks: set a.b to 1 or 2, or c to 3, or start 4 or 8 ranks"),
      (Ways{{{"a.b", 1}}, {{"a.b", 2}}, {{"c", 3}}, {{"ranks", 4}}, {{"ranks", 8}}}));
  EXPECT_EQ(ways_of("no: set a to 1 and b.c to 2, or start 1 rank with a=4 and b.c=5"),
            (Ways{{{"a", 1}, {"b.c", 2}}, {{"a", 4}, {"b.c", 5}, {"ranks", 1}}}));
  EXPECT_EQ(ways_of("no: leave batch.ramp out, or set that stage to 6, or start 2 ranks without batch.ramp"),
            (Ways{{{"batch.ramp", 0}}, {{"that stage", 6}}, {{"batch.ramp", 0}, {"ranks", 2}}}));
  EXPECT_EQ(ways_of("c2: x = 3; this run has 4 ranks"), Ways{});
}

TEST(AdviceSupport, RefusesWhatNamesNothing) { EXPECT_THROW(ways_of("no: set nothing"), std::runtime_error); }

}  // namespace
}  // namespace assay::tests::advice_test
