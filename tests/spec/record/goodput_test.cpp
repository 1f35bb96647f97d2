// labels: unit
// What the wall-clock time of all starts of a run went into.
#include "spec/record/goodput.hpp"

#include <gtest/gtest.h>

#include "tests/support/example_run.hpp"

namespace assay::spec::record::goodput_test {
namespace {

Step step_of(std::int64_t step) {
  Step out = tests::example_step(step);
  out.seconds = 4, out.phases.data_wait = 0.5, out.phases.checkpoint = 0.25;  // 3.25 s of its own
  return out;
}

SkippedStep skipped_of(std::int64_t step, double seconds) {
  SkippedStep out;
  out.step = step, out.seconds = seconds;
  return out;
}

RunEnd end_of(double steps) {
  RunEnd end;
  end.goodput = Goodput{.seconds = 10 + steps,
                        .start_up = 1,
                        .steps = steps,
                        .data_wait = 2,
                        .saves = 3,
                        .evaluation = 1.5,
                        .other = 2.5};
  return end;
}

double parts(const RunGoodput& sum) {
  return sum.productive + sum.data_wait + sum.start_up + sum.saves + sum.evaluation + sum.skipped +
         sum.redone + sum.other;
}

TEST(GoodputSpec, OfOneStartStepsAreProductiveButForThoseThatWereSkipped) {
  const RunGoodput sum =
      run_goodput({tests::example_start(), step_of(1), skipped_of(2, 3), step_of(3), end_of(20)});
  EXPECT_EQ(sum.starts, 1);
  EXPECT_EQ(sum.unended, 0);
  EXPECT_EQ(sum.seconds, 30);
  EXPECT_EQ(sum.productive, 17);
  EXPECT_EQ(sum.skipped, 3);
  EXPECT_EQ(sum.redone, 0);
  EXPECT_EQ(sum.start_up, 1);
  EXPECT_EQ(sum.evaluation, 1.5);
  EXPECT_EQ(parts(sum), sum.seconds);
}

TEST(GoodputSpec, StepsBehindTheCheckpointThatALaterStartResumedFromWereDoneAgain) {
  // The first start was killed behind step 4, and left no end; step 3 and 4 are done again.
  const RunGoodput sum = run_goodput({tests::example_start(), step_of(1), step_of(2), step_of(3), step_of(4),
                                      tests::example_start(), ResumeFrom{.step = 2, .path = "a"}, step_of(3),
                                      step_of(4), step_of(5), end_of(20)});
  EXPECT_EQ(sum.starts, 2);
  EXPECT_EQ(sum.unended, 1);
  EXPECT_EQ(sum.redone, 2 * 3.25);
  EXPECT_EQ(sum.productive, 2 * 3.25 + 20);
  EXPECT_EQ(sum.data_wait, 4 * 0.5 + 2);
  EXPECT_EQ(sum.saves, 4 * 0.25 + 3);
  EXPECT_EQ(sum.seconds, 4 * 4 + 30);
  EXPECT_EQ(parts(sum), sum.seconds);
}

TEST(GoodputSpec, ARunThatBeginsAnewDoesAllStepsAgain) {
  const RunGoodput sum = run_goodput(
      {tests::example_start(), step_of(1), step_of(2), end_of(8), tests::example_start(), step_of(1)});
  EXPECT_EQ(sum.redone, 2 * 3.25);
  EXPECT_EQ(sum.productive, 8 - 2 * 3.25 + 3.25);
  EXPECT_EQ(parts(sum), sum.seconds);
}

TEST(GoodputSpec, TheLineNamesLostPartsLargestFirst) {
  EXPECT_EQ(goodput_text({.starts = 2,
                          .unended = 1,
                          .seconds = 200,
                          .productive = 150,
                          .start_up = 10,
                          .saves = 30,
                          .redone = 10}),
            "75.0 % of 3 min 20 s in 2 starts in productive steps (1 left no end: their steps alone are "
            "counted); checkpoints 15.0 %, start-up 5.0 %, steps done again 5.0 %");
}

}  // namespace
}  // namespace assay::spec::record::goodput_test
