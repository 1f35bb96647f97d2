// labels: unit
// Every moment since the trainer was loaded belongs to one part of a run.
#include "impl/run/run_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace assay::impl::run::run_clock_test {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// The trainer's library is loaded before the tests are.
const auto tests_began = steady_clock::now();

TEST(RunClockImpl, TimeBelongsToThePartThatWasEnteredLast) {
  const double age = duration<double>(steady_clock::now() - tests_began).count();
  const auto begin = steady_clock::now();
  RunClock clock;
  clock.enter(RunPart::steps);
  std::this_thread::sleep_for(milliseconds(40));
  clock.enter(RunPart::saves);
  std::this_thread::sleep_for(milliseconds(20));
  clock.enter(RunPart::steps);
  std::this_thread::sleep_for(milliseconds(10));
  const auto goodput = clock.goodput(1000, 0.015);
  const double passed = duration<double>(steady_clock::now() - begin).count();
  EXPECT_GE(goodput.start_up, age);
  EXPECT_GE(goodput.steps, 0.050 - 0.015);
  EXPECT_EQ(goodput.data_wait, 0.015);
  EXPECT_GE(goodput.saves, 0.020);
  EXPECT_EQ(goodput.evaluation, 0);
  EXPECT_EQ(goodput.other, 0);
  EXPECT_LE(goodput.steps + goodput.data_wait + goodput.saves, passed);
  EXPECT_DOUBLE_EQ(goodput.start_up + goodput.steps + goodput.data_wait + goodput.saves, goodput.seconds);
  EXPECT_DOUBLE_EQ(goodput.tokens_per_second, 1000 / goodput.seconds);
}

}  // namespace
}  // namespace assay::impl::run::run_clock_test
