// labels: unit
#include "spec/audit/unnamed_ranks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::spec::audit::unnamed_ranks_test {
namespace {

struct Printed3 {
  double step, loss, rate;
};

/// How many lines are left of these, in their order.
std::size_t left(const std::vector<Printed3>& lines) {
  std::vector<Step> steps(lines.size());
  std::vector<const Step*> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    steps[i][Field::step] = exactly(lines[i].step, 1);
    steps[i][Field::loss] = exactly(lines[i].loss, 1);
    steps[i][Field::tokens_per_second] = exactly(lines[i].rate, 1);
    all.push_back(&steps[i]);
  }
  return without_unnamed_ranks(all).size();
}

TEST(UnnamedRanksSpec, OneLineOfEachStepIsLeft) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 101}, {2, 8, 102}, {2, 8, 100}, {3, 7, 101}, {3, 7, 100}}), 3u);
}

TEST(UnnamedRanksSpec, OneStepOfSeveralRanksIsEnough) {
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.3, 42332}, {100, 2.3, 42333}, {100, 2.3, 42331}}), 1u);
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.3, 42332}, {100, 2.3, 42332}}), 3u);  // one line, three times
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.4, 42333}}), 2u);
}

TEST(UnnamedRanksSpec, RanksOfOneStepHaveOneLoss) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 101}, {2, 8, 102}, {2, 8.5, 100}, {3, 7, 101}, {3, 7, 100}}), 6u);
}

TEST(UnnamedRanksSpec, ALogThatIsThereTwiceIsNoLogOfTwoRanks) {
  // As a run that was started again from its first step, or a file that was appended to itself.
  EXPECT_EQ(left({{1, 9, 100},
                  {2, 8, 102},
                  {3, 7, 101},
                  {4, 6, 101},
                  {5, 5, 101},
                  {1, 9, 101},
                  {2, 8, 100},
                  {3, 7, 100},
                  {4, 6, 102},
                  {5, 5, 100}}),
            10u);
}

TEST(UnnamedRanksSpec, EveryLineTwiceIsNoLogOfTwoRanks) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 100}, {2, 8, 102}, {2, 8, 102}, {3, 7, 101}, {3, 7, 101}}), 6u);
}

}  // namespace
}  // namespace assay::spec::audit::unnamed_ranks_test
