// labels: unit
// nanoGPT's MFU is a mean over the lines that are printed: lines that an excerpt leaves out are in it, too.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::running_mean_excerpts_test {
namespace {

using tests::read_text;

struct Lines {
  std::uint32_t seed = 1;
  int first = 0, last = 1000;
  double seconds = 0.25, noise = 0.01;
  int evaluation = 5000;     ///< every so many steps; takes 20 s
  int wrong = -1;            ///< the step whose line is wrong
  double time = 1, mfu = 1;  ///< times what they are, on that line
};

/// One line in ten steps of those that `shown` keeps.
std::string nanogpt(const Lines& run, const std::function<bool(int)>& shown) {
  std::string log;
  double mean = -1;
  for (int step = run.first; step <= run.last; step += 10) {
    const auto block = random::philox({static_cast<std::uint32_t>(step), 0, 0, 0}, {run.seed, 11});
    const double seconds = run.seconds * (1 + run.noise * static_cast<double>(block[0]) / 4294967296.0) +
                           (step % run.evaluation == 0 ? 20 : 0);
    if (step >= run.first + 10) {
      const double own = 0.16 / seconds;
      mean = mean < 0 ? own : 0.9 * mean + 0.1 * own;
    }
    if (!shown(step)) continue;
    const bool wrong = step == run.wrong;
    char line[128];
    std::snprintf(line, sizeof line, "iter %d: loss %.4f, time %.2fms, mfu %.2f%%\n", step,
                  10.9 - 0.005 * step, 1000 * seconds * (wrong ? run.time : 1),
                  mean < 0 ? -100 : 100 * mean * (wrong ? run.mfu : 1));
    log += line;
  }
  return log;
}

Verdict steady(const std::string& log) { return judge("work_steady", read_text(log)).verdict; }

const auto all = [](int) { return true; };

TEST(RunningMeanExcerptsSpec, LinesThatAreLeftOutAreInTheMean) {
  for (std::uint32_t seed = 0; seed < 40; ++seed)
    for (const int stride : {20, 30, 50, 100})
      for (const int count : {3, 5, 9}) {
        const int from = static_cast<int>(seed) % 5 * 10 + 10;
        const auto shown = [&](int step) {
          return step >= from && (step - from) % stride == 0 && step < from + count * stride;
        };
        EXPECT_NE(steady(nanogpt(Lines{.seed = seed}, shown)), Verdict::contradicts) << seed << " " << stride;
      }
}

/// Three lines, one of them an evaluation's: iterations 50, 100 and 170.
TEST(RunningMeanExcerptsSpec, AnEvaluationAmongThreeLinesIsNoWrongLine) {
  const auto shown = [](int step) { return step == 50 || step == 100 || step == 170; };
  EXPECT_NE(steady(nanogpt({.evaluation = 100}, shown)), Verdict::contradicts);
}

TEST(RunningMeanExcerptsSpec, OneWrongLineOfAWholeLogContradicts) {
  EXPECT_EQ(steady(nanogpt({}, all)), Verdict::holds);
  EXPECT_EQ(steady(nanogpt({.wrong = 500, .mfu = 1.3}, all)), Verdict::contradicts);
  EXPECT_EQ(steady(nanogpt({.wrong = 500, .mfu = 0.7}, all)), Verdict::contradicts);
  EXPECT_EQ(steady(nanogpt({.wrong = 500, .time = 1.3}, all)), Verdict::contradicts);
  EXPECT_EQ(steady(nanogpt({.last = 200, .evaluation = 100, .wrong = 150, .mfu = 1.25}, all)),
            Verdict::contradicts)
      << "an evaluation's line says nothing of how far steps lie apart";
  EXPECT_EQ(steady(nanogpt({.last = 400, .wrong = 200, .mfu = 0.95}, all)), Verdict::contradicts)
      << "a fall that the line behind does not go on from";
  EXPECT_EQ(steady(nanogpt({.last = 400, .evaluation = 100, .wrong = 150, .time = 3, .mfu = 0.9}, all)),
            Verdict::contradicts)
      << "a time that no other line has, beside a fall";
}

/// Only lines of iterations are kept: a second -100 % shows another start, which may be as fast as it likes.
TEST(RunningMeanExcerptsSpec, ASecondLineThatMeasuresNothingYetIsAnotherStart) {
  const std::string log =
      nanogpt({.seconds = 0.6}, all) + nanogpt({.first = 1010, .last = 1400, .seconds = 0.2}, all);
  EXPECT_NE(steady(log), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::running_mean_excerpts_test
