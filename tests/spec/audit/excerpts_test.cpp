// labels: unit
// Lines that were left out of a log: what their steps took is known as far as the shown ones are steady.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::excerpts_test {
namespace {

using tests::read_text;

/// About 1, and no more than `noise` off.
double about_one(std::uint32_t seed, int step, double noise) {
  const auto block = random::philox({static_cast<std::uint32_t>(step), 0, 0, 0}, {seed, 7});
  return 1 + noise * (2 * (static_cast<double>(block[0]) / 4294967296.0) - 1);
}

struct Excerpt {
  std::uint32_t seed = 1;
  int steps = 300, interval = 10;  ///< of the run; from line to line
  double noise = 0.006;
  double scale = 1;                                           ///< of the printed step times
  std::function<bool(int)> shown = [](int) { return true; };  ///< whether the line of that step is kept
  std::string header = {};
};

std::string stamp(const char* form, double clock) {
  char text[64];
  const int ms = static_cast<int>(std::lround(1000 * clock));
  std::snprintf(text, sizeof text, form, ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
  return text;
}

/// torchtitan's lines of one rank, steps of about 1.3 s; the first step is a line of its own.
RunRecord torchtitan(const Excerpt& run) {
  std::string log =
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [1]\n"
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Trainer is initialized with local batch size 1, "
      "global batch size 1, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup "
      "20)\n";
  double clock = 3600, window = 0;
  for (int step = 1, before = 0; step <= run.steps; ++step) {
    const double seconds = 1.3 * about_one(run.seed, step, run.noise);
    clock += seconds, window += seconds;
    if (step != 1 && step % run.interval != 0) continue;
    char line[200];
    std::snprintf(line, sizeof line,
                  " - root - INFO - step: %2d  loss: %7.4f  memory: 60.10GiB(75.90%%)  tps: %.0f\n", step,
                  11 - 0.01 * step, 8192 * (step - before) / window / run.scale);
    if (run.shown(step)) log += stamp("[titan] 2025-10-16 %02d:%02d:%02d,%03d", clock) + line;
    before = step, window = 0;
  }
  return read_text(log);
}

/// Megatron-LM's, steps of about 5 s, stamped to the second.
RunRecord megatron(const Excerpt& run) {
  std::string log = run.header;
  double clock = 3600, window = 0;
  for (int step = 1; step <= run.steps; ++step) {
    const double seconds = 5 * about_one(run.seed, step, run.noise);
    clock += seconds, window += seconds;
    if (step % run.interval != 0) continue;
    char line[400];
    std::snprintf(
        line, sizeof line,
        " [2024-04-06 %02d:%02d:%02d] iteration %8d/    1000 | consumed samples: %12d | elapsed time "
        "per iteration (ms): %.1f | learning rate: 1.420000E-05 | global batch size:   128 | lm "
        "loss: 1.8%05dE+00 | loss scale: 1.0 | grad norm: 1.300 |\n",
        static_cast<int>(clock) / 3600, static_cast<int>(clock) / 60 % 60, static_cast<int>(clock) % 60, step,
        128 * step, 1000 * window / run.interval * run.scale, 10 * step);
    if (run.shown(step)) log += line;
    window = 0;
  }
  return read_text(log);
}

const std::function<bool(int)> every_third = [](int step) { return step % 30 == 10; };
const std::function<bool(int)> from_the_first = [](int step) { return step == 1 || step % 30 == 0; };

TEST(ExcerptsSpec, LinesThatAreLeftOutAreAboutAsThoseThatAreShown) {
  for (std::uint32_t seed = 0; seed < 40; ++seed)
    for (const int last : {70, 130, 300})
      for (const double noise : {0.002, 0.006, 0.05}) {
        Excerpt run{.seed = seed, .steps = last, .noise = noise, .shown = every_third};
        EXPECT_EQ(judge("rate_wall_clock", torchtitan(run)).verdict, Verdict::holds) << seed << " " << last;
        EXPECT_EQ(judge("wall_clock", megatron(run)).verdict, Verdict::holds) << seed << " " << last;
        EXPECT_EQ(
            judge("rate_wall_clock",
                  torchtitan(
                      {.seed = seed, .steps = last, .noise = std::min(noise, 0.02), .shown = from_the_first}))
                .verdict,
            Verdict::holds)
            << seed << " " << last;
        run.interval = 1;
        EXPECT_EQ(judge("rate_wall_clock", torchtitan(run)).verdict, Verdict::holds) << seed << " " << last;
        EXPECT_EQ(judge("wall_clock", megatron(run)).verdict, Verdict::holds) << seed << " " << last;
      }
}

TEST(ExcerptsSpec, FirstAndLastLinesSayNothingOfThoseBetween) {
  for (std::uint32_t seed = 0; seed < 40; ++seed)
    for (const int interval : {1, 10}) {
      const Excerpt run{.seed = seed, .interval = interval, .shown = [&](int step) {
                          return step <= 5 * interval || step > 300 - 5 * interval;
                        }};
      EXPECT_EQ(judge("wall_clock", megatron(run)).verdict, Verdict::holds) << seed;
      EXPECT_EQ(judge("rate_wall_clock", torchtitan(run)).verdict, Verdict::holds) << seed;
    }
}

/// Steady lines tell of those between; and where the log says how far its lines are apart, there are none.
TEST(ExcerptsSpec, StepsLongerThanTheClockContradict) {
  const auto long_steps = [](double scale, double noise) {
    return Excerpt{.noise = noise, .scale = scale, .shown = every_third};
  };
  EXPECT_EQ(judge("wall_clock", megatron(long_steps(1.05, 0.006))).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("rate_wall_clock", torchtitan(long_steps(1.05, 0.006))).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("wall_clock", megatron(long_steps(1.05, 0.2))).verdict, Verdict::holds);
  Excerpt few = long_steps(1.05, 0.006);
  few.steps = 130;
  EXPECT_EQ(judge("wall_clock", megatron(few)).verdict, Verdict::holds) << "five lines tell little";
  few.scale = 1.2;
  EXPECT_EQ(judge("wall_clock", megatron(few)).verdict, Verdict::contradicts) << "but to a tenth";
  const Excerpt whole{.steps = 50, .noise = 0.02, .scale = 1.15};
  EXPECT_EQ(judge("rate_wall_clock", torchtitan(whole)).verdict, Verdict::contradicts) << "1, 10, 20 ...";
  const Excerpt early{.steps = 30, .noise = 0.05, .scale = 1.2};
  EXPECT_EQ(judge("rate_wall_clock", torchtitan(early)).verdict, Verdict::contradicts)
      << "lines from the first step on are all there: four tell as many";
  Excerpt stated{.steps = 50, .noise = 0.2, .scale = 1.05};
  EXPECT_EQ(judge("wall_clock", megatron(stated)).verdict, Verdict::holds) << "lines may be left out";
  stated.header = "  log_interval .................................... 10\n";
  EXPECT_EQ(judge("wall_clock", megatron(stated)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::excerpts_test
