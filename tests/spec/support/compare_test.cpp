// labels: unit
// The comparator must be able to fail: each case here is one that it has to refuse.
#include "tests/support/compare.hpp"

#include <limits>

namespace assay::tests::compare_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Compare, AcceptsEqualValues) { EXPECT_TRUE(close({{2}, {1, 2}}, {{2}, {1, 2}}, Allowed::exact())); }

TEST(Compare, RefusesTheSmallestDifferenceWhenExact) {
  EXPECT_FALSE(close({{1}, {std::nextafter(1.0, 2.0)}}, {{1}, {1}}, Allowed::exact()));
}

TEST(Compare, RefusesNanOnEitherSideAndOnBoth) {
  EXPECT_FALSE(close({{1}, {nan}}, {{1}, {1}}, Allowed::relative(1)));
  EXPECT_FALSE(close({{1}, {1}}, {{1}, {nan}}, Allowed::relative(1)));
  EXPECT_FALSE(close({{1}, {nan}}, {{1}, {nan}}, Allowed::relative(1)));
}

TEST(Compare, RefusesInfinityEvenWhenBothHaveIt) {
  EXPECT_FALSE(close({{1}, {infinity}}, {{1}, {infinity}}, Allowed::relative(1)));
}

TEST(Compare, RefusesOtherShapesOfEqualSize) {
  EXPECT_FALSE(close({{2, 3}, {1, 2, 3, 4, 5, 6}}, {{3, 2}, {1, 2, 3, 4, 5, 6}}, Allowed::relative(1)));
}

TEST(Compare, RefusesDataThatIsNotTheShapes) {
  EXPECT_FALSE(close({{3}, {1, 2}}, {{3}, {1, 2}}, Allowed::relative(1)));
}

TEST(Compare, RefusesMostlyZeroExpectations) {
  std::vector<double> zeros(100, 0.0);
  zeros[3] = 1;
  EXPECT_FALSE(close({{100}, zeros}, {{100}, zeros}, Allowed::relative(1)));
  EXPECT_TRUE(close({{100}, zeros}, {{100}, zeros}, Allowed::relative(1), true));
}

TEST(Compare, RefusesBoundsThatBoundNothing) {
  EXPECT_FALSE(close({{1}, {1}}, {{1}, {1}}, Allowed::elementwise({infinity})));
  EXPECT_FALSE(close({{1}, {1}}, {{1}, {1}}, Allowed::elementwise({nan})));
  EXPECT_FALSE(close({{1}, {1}}, {{1}, {1}}, Allowed::elementwise({-1})));
  EXPECT_FALSE(close({{2}, {1, 1}}, {{2}, {1, 1}}, Allowed::elementwise({1})));
}

TEST(Compare, HoldsEachElementToItsOwnBound) {
  const Values expected{{2}, {1, 100}};
  EXPECT_TRUE(close({{2}, {1.5, 101}}, expected, Allowed::elementwise({0.5, 1})));
  EXPECT_FALSE(close({{2}, {1.6, 100}}, expected, Allowed::elementwise({0.5, 1})));
}

TEST(Compare, ReportsTheShareOfTheAllowance) {
  EXPECT_DOUBLE_EQ(largest_share({{2}, {1, 2.25}}, {{2}, {1, 2}}, Allowed::elementwise({1, 0.5})), 0.5);
}

}  // namespace
}  // namespace assay::tests::compare_test
