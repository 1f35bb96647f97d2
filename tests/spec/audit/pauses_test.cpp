// labels: unit
// Clocks that show more than the steps: pauses between lines, with their own lines or without, and rates that
// are a multiple of what they should be.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::pauses_test {
namespace {

using tests::first_cause;
using tests::read_text;

/// Megatron-LM's lines, steps of one second; behind every `every`-th iteration a pause, and its line where
/// `said` is not empty. `scale`: of the printed times.
RunRecord megatron(int interval, int every, int pause, const std::string& said, double scale = 1) {
  std::string log;
  int clock = 0;
  for (int step = 1; step <= 900; ++step) {
    clock += 1;
    if (step % interval == 0) {
      char line[400];
      std::snprintf(
          line, sizeof line,
          " [2024-04-06 %02d:%02d:%02d] iteration %8d/    1000 | consumed samples: %12d | elapsed "
          "time per iteration (ms): %.1f | learning rate: 1.420000E-05 | global batch size:   128 | "
          "lm loss: 1.8%05dE+00 | loss scale: 1.0 | grad norm: 1.300 |\n",
          clock / 3600, clock / 60 % 60, clock % 60, step, 128 * step, 1000.0 * scale, 10 * step);
      log += line;
    }
    if (step % every != 0) continue;
    clock += pause;
    if (!said.empty()) log += said + std::to_string(step) + " to /ckpt\n";
  }
  return read_text(log);
}

Verdict wall_clock(const RunRecord& record) { return judge("wall_clock", record).verdict; }

TEST(PausesSpec, LinesOfEvaluationAndSavingExplainWhatTheClockShowsMore) {
  for (const char* said : {"saving checkpoint at iteration ", " validation loss at iteration "}) {
    EXPECT_EQ(wall_clock(megatron(100, 100, 60, said)), Verdict::holds) << "between all lines";
    EXPECT_EQ(wall_clock(megatron(10, 100, 60, said)), Verdict::holds);
    EXPECT_EQ(wall_clock(megatron(10, 100, 60, said, 0.5)), Verdict::contradicts) << "half of the time";
  }
  EXPECT_EQ(wall_clock(megatron(100, 100, 60, "")), Verdict::contradicts);
  const Result longer = judge("wall_clock", megatron(100, 50, 11, "saving checkpoint at iteration "));
  EXPECT_EQ(longer.note.find("more in every stretch"), std::string::npos) << longer.note;
}

TEST(PausesSpec, AClockThatRunsLikeTheStepsSomewhereShowsPausesElsewhere) {
  const Result told = judge("wall_clock", megatron(10, 100, 60, ""));
  EXPECT_EQ(told.verdict, Verdict::holds);
  EXPECT_NE(told.note.find("runs like the steps"), std::string::npos) << told.note;
  EXPECT_EQ(told.note.find("more in every stretch"), std::string::npos) << told.note;
  EXPECT_EQ(wall_clock(megatron(10, 100, 60, "", 0.5)), Verdict::contradicts);
  EXPECT_EQ(wall_clock(megatron(1, 10, 20, "")), Verdict::holds) << "stamps of a second, steps of one";
}

/// torchtitan's lines of one rank of eight, every ten steps of about 1.6 s; `pause` between all of them that
/// are not printed, and rates of `scale`. `first`: none before the second line.
Audit torchtitan(double pause, double scale, bool steady = false, bool first = false) {
  std::string log =
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Trainer is initialized with local batch size 1, "
      "global batch size 8, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup "
      "20)\n"
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters\n"
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB "
      "memory\n"
      "[titan] 2025-10-16 01:00:00,000 - root - INFO - Peak FLOPS used for computing MFU: 9.890e+14\n";
  double clock = 3600;
  for (int k = 0; k < 21; ++k) {
    const int steps = k == 0 ? 1 : k == 1 ? 9 : 10;
    const double seconds = steady ? 1.60 : 1.60 + 0.005 * (k * 7 % 5);
    clock += steps * seconds + (k > (first ? 1 : 0) ? pause : 0);
    const int ms = static_cast<int>(std::lround(1000 * clock));
    // 6 x 8,030,261,248 - 525,336,576 entries of the table, and attention: 57.9 GFLOP a token.
    const double rate = 8192 / seconds * scale, flops = rate * 57914449920.0;
    char line[256];
    std::snprintf(line, sizeof line,
                  "[titan] 2025-10-16 %02d:%02d:%02d,%03d - root - INFO - step: %2d  loss: %7.4f  memory: "
                  "60.10GiB(75.98%%)  tps: %.0f  tflops: %.2f  mfu: %.2f%%\n",
                  ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000, k == 0 ? 1 : 10 * k, 11 - 0.1 * k,
                  rate, flops / 1e12, flops / 9.89e14 * 100);
    log += line;
  }
  static RunRecord kept;
  kept = read_text(log);
  return audit(kept);
}

TEST(PausesSpec, WhatEveryWindowMissesAlikeIsAMultiple) {
  for (const double scale : {1.5, 2.0, 2.4}) {
    const Audit lie = torchtitan(0, scale);
    ASSERT_TRUE(lie.contradicts) << scale;
    EXPECT_EQ(first_cause(lie), "rate_beyond_clock") << scale;
    for (const Reading& reading : lie.readings)
      for (const Change& change : reading.changes) EXPECT_NE(change.id, "time_left_out") << scale;
    const auto& rate = lie.readings.front().corrected.per_gpu;
    ASSERT_TRUE(rate) << scale;
    EXPECT_NEAR(rate->middle() / 5088, 1, 0.01) << scale;
  }
  // Validations whose lines are filtered out: as long each, or not, but no share of the steps.
  EXPECT_EQ(first_cause(torchtitan(20, 1)), "time_left_out");
  // Steps that are all alike tell neither from the other.
  const Audit either = torchtitan(20, 1, true);
  EXPECT_EQ(first_cause(either), "time_left_out");
  // What one window shows of the steps alone, no multiple explains.
  const Audit paused = torchtitan(120, 1, false, true);
  EXPECT_FALSE(paused.contradicts) << contradictions(*paused.record);
  EXPECT_TRUE(torchtitan(0, 2.4, false, true).contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::pauses_test
