// labels: unit
// Every moment since the process began belongs to one part of a run.
#include "impl/run/run_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "impl/machine/host.hpp"

namespace assay::impl::run::run_clock_test {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(RunClockImpl, TimeBelongsToThePartThatWasEnteredLast) {
  const double age = process_age();
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

TEST(RunClockImpl, AProcessGrowsOlderAsTimePasses) {
  const auto a = steady_clock::now();
  const double before = process_age();
  const auto b = steady_clock::now();
  std::this_thread::sleep_for(milliseconds(100));
  const auto c = steady_clock::now();
  const double after = process_age();
  const auto d = steady_clock::now();
  EXPECT_GT(before, 0);
  constexpr double rounding = 1e-6;  // ages are differences of numbers of days, in seconds
  EXPECT_GE(after - before, duration<double>(c - b).count() - rounding);
  EXPECT_LE(after - before, duration<double>(d - a).count() + rounding);
}

}  // namespace
}  // namespace assay::impl::run::run_clock_test
