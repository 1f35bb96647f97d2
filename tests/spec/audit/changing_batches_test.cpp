// labels: unit
// Batches that change from line to line, beside the sequences that the lines count since the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::changing_batches_test {
namespace {

struct Printed {
  int step;
  long batch, consumed;
};

/// Megatron-LM's: the batch grows from 64 by 64 to 512, every line of `interval` steps is printed. `lie`
/// changes what is printed; `next` prints the batch of the step that follows.
std::string lines(int interval, const std::function<void(Printed&)>& lie = {}, bool next = false) {
  const auto batch_of = [](long consumed) { return std::min(512L, 64 + 64 * (consumed / 5715)); };
  std::string log;
  long consumed = 0;
  for (int step = 1; step <= 400; ++step) {
    const long own = batch_of(consumed);
    consumed += own;
    if (step % interval != 0) continue;
    Printed printed{step, next ? batch_of(consumed) : own, consumed};
    if (lie) lie(printed);
    char line[400];
    std::snprintf(
        line, sizeof line,
        " iteration %8d/    5000 | consumed samples: %12ld | elapsed time per iteration (ms): %.1f | "
        "learning rate: 1.000000E-04 | global batch size: %5ld | lm loss: 4.720000E+00 | number of "
        "skipped iterations:   0 |\n",
        printed.step, printed.consumed, 1000.0 + step % 7, printed.batch);
    log += line;
  }
  return log;
}

constexpr char ramp[] =
    "------------------------ arguments ------------------------\n"
    "  global_batch_size ............................... 512\n"
    "  rampup_batch_size ............................... ['64', '64', '40000']\n"
    "-------------------- end of arguments ---------------------\n";

Result sequences_total(int interval, const std::function<void(Printed&)>& lie = {}, bool next = false) {
  return judge("sequences_total", tests::read_text(ramp + lines(interval, lie, next)));
}

TEST(ChangingBatchesSpec, WhatIsConsumedGrowsByTheBatchesOfTheLines) {
  for (const int interval : {1, 2, 7, 10, 50}) {
    for (const bool next : {false, true}) {
      const Result result = sequences_total(interval, {}, next);
      EXPECT_EQ(result.verdict, Verdict::holds) << interval << next;
      EXPECT_GE(result.judged, 400U / static_cast<unsigned>(interval) - 1) << interval << next;
    }
    EXPECT_EQ(sequences_total(interval, [](Printed& p) { p.consumed *= 2; }).verdict, Verdict::contradicts);
    EXPECT_EQ(sequences_total(interval, [](Printed& p) { p.batch *= 2; }).verdict, Verdict::contradicts);
  }
}

TEST(ChangingBatchesSpec, ThatOfOneLineIsTold) {
  const auto at_100 = [](int of_batch, int of_count) {
    return [=](Printed& p) {
      if (p.step == 100) p.batch *= of_batch, p.consumed += of_count;
    };
  };
  const Result batch = sequences_total(1, at_100(2, 0)), count = sequences_total(1, at_100(1, 1000));
  EXPECT_EQ(batch.verdict, Verdict::contradicts);
  EXPECT_EQ(count.verdict, Verdict::contradicts);
}

/// Of steps that no line shows any batch may have been, where it falls too.
TEST(ChangingBatchesSpec, OfABatchThatFallsOnlyNeighbouringStepsAreHeld) {
  const auto odd_steps = [](Printed& p) {
    p.batch = p.step / 2 % 2 == 0 ? 64 : 32;
    p.consumed = 40 * p.step;  // 24, 56 or the like between
  };
  EXPECT_EQ(sequences_total(2, odd_steps).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(sequences_total(1, odd_steps).verdict, Verdict::contradicts);
}

/// Each line's FLOP/s are held to its own batch, where it is that of the lines around it. 16 GPUs do
/// batch x 2,048 tokens of 1 GFLOP in a second.
TEST(ChangingBatchesSpec, FlopsAreThoseOfTheBatchOfTheirLine) {
  const auto judged = [](double times, bool next) {
    std::string log = ramp + lines(1, {}, next);
    std::string out;
    long consumed = 0, before = 0;
    for (std::size_t at = 0; at < log.size();) {
      const std::size_t end = log.find('\n', at);
      std::string line = log.substr(at, end - at);
      at = end + 1;
      if (const std::size_t count = line.find("consumed samples: "); count != std::string::npos) {
        consumed = std::stol(line.substr(count + 18));
        const double seconds = 1 + (std::stol(line.substr(line.find("iteration") + 9)) % 7) * 1e-3;
        char rate[80];
        std::snprintf(rate, sizeof rate, " throughput per GPU (TFLOP/s/GPU): %.1f |",
                      times * static_cast<double>(consumed - before) * 2048 * 1e9 / seconds / 16 / 1e12);
        before = consumed;
        line += rate;
      }
      out += line + "\n";
    }
    return judge("flops_rate_of_batch",
                 tests::read_text(out, "flops_per_token=1.0000e9,sequence_length=2048,gpus=16"));
  };
  for (const bool next : {false, true}) {
    const Result honest = judged(1, next);
    EXPECT_EQ(honest.verdict, Verdict::holds) << next;
    EXPECT_GT(honest.judged, 350) << next;
    EXPECT_EQ(judged(2, next).verdict, Verdict::contradicts) << next;
  }
}

/// Without a ramp the passes are constant: 2 sequences, 16 passes and 16 ranks make 512 in every step.
TEST(ChangingBatchesSpec, ABatchThatChangesWithoutARampStandsBesideThePasses) {
  const std::string passes =
      "using world size: 16, data-parallel size: 16, context-parallel size: 1, hierarchical context-parallel "
      "sizes: Nonetensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
      "setting number of micro-batches to constant 16\n"
      "------------------------ arguments ------------------------\n"
      "  micro_batch_size ................................ 2\n"
      "  world_size ...................................... 16\n"
      "-------------------- end of arguments ---------------------\n";
  const auto judged = [&](const std::string& log) { return judge("step_sequences", tests::read_text(log)); };
  const auto turns = [](long one, long other) {
    return [=](Printed& p) { p.batch = p.step % 2 == 0 ? one : other; };
  };
  EXPECT_EQ(judged(passes + lines(1)).verdict, Verdict::contradicts);
  const Result in_turns = judged(passes + lines(1, turns(512, 256)));
  EXPECT_EQ(in_turns.verdict, Verdict::contradicts);
  EXPECT_EQ(in_turns.contradicted, 200) << "those of 512 are what the passes make";
  EXPECT_EQ(judged(ramp + lines(1)).verdict, Verdict::cannot_be_judged);
  // Passes that a later start states are not those of the steps before it.
  std::string resumed = lines(1);
  resumed.insert(resumed.find(" iteration      301/"), passes);
  EXPECT_EQ(judged(resumed).verdict, Verdict::holds);
  EXPECT_EQ(judged(resumed).judged, 100);
}

}  // namespace
}  // namespace assay::spec::audit::changing_batches_test
