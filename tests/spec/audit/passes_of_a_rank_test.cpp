// labels: unit
// nanoGPT of before May 2023 prints the tokens of one rank's passes, and one rank's MFU.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::passes_of_a_rank_test {
namespace {

/// 2 s a step on each rank; `passes` as the line says, `made` as the MFU is of.
std::string log_of(int configured, int passes, double made) {
  const double flops = 6 * 123.59e6 + 12.0 * 12 * 768 * 1024;
  std::string out =
      "batch_size = 12\nblock_size = 1024\ngradient_accumulation_steps = " + std::to_string(configured) +
      "\ntotal number of tokens per iteration: " + std::to_string(12 * 1024 * passes) +
      "\nnumber of parameters: 123.59M\n";
  for (int step = 0; step <= 100; step += 10) {
    char line[128];
    std::snprintf(line, sizeof line, "iter %d: loss %.4f, time 2000.00ms, mfu %.2f%%\n", step,
                  10 - 0.01 * step, step == 0 ? -100 : 100 * flops * 12 * 1024 * made / 2 / 312e12);
    out += line;
  }
  return out;
}

Verdict verdict(const char* rule, const std::string& log, const char* set = "") {
  return judge(rule, tests::read_text(log, set)).verdict;
}

TEST(PassesOfARankSpec, OneRanksShareOfOnePeakNeedsNoNumberOfGpus) {
  EXPECT_EQ(verdict("mfu_of_batch", log_of(5, 5, 5)), Verdict::holds);
  EXPECT_EQ(verdict("mfu_of_batch", log_of(5, 40, 40)), Verdict::holds);
  EXPECT_EQ(verdict("mfu_of_batch", log_of(5, 5, 36)), Verdict::contradicts);
  for (const char* gpus : {"gpus=4", "gpus=8"}) {
    EXPECT_EQ(verdict("mfu_of_batch", log_of(5, 5, 5), gpus), Verdict::holds) << gpus;
    EXPECT_EQ(verdict("mfu_of_batch", log_of(5, 5, 36), gpus), Verdict::contradicts) << gpus;
  }
}

TEST(PassesOfARankSpec, ThePassesAreTheConfiguredOnesOrEightTimesThese) {
  for (const int honest : {5, 40})
    EXPECT_EQ(verdict("tokens_per_step", log_of(5, honest, honest)), Verdict::holds);
  for (const int other : {7, 10, 20, 80})
    EXPECT_EQ(verdict("tokens_per_step", log_of(5, other, other)), Verdict::contradicts) << other;
}

}  // namespace
}  // namespace assay::spec::audit::passes_of_a_rank_test
