// labels: unit
// nanoGPT of before May 2023 prints the tokens of one rank's passes.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::passes_of_a_rank_test {
namespace {

/// 2 s a step; `passes` as the line says, 0: without that line.
std::string log_of(int configured, int passes) {
  std::string out =
      "batch_size = 12\nblock_size = 1024\ngradient_accumulation_steps = " + std::to_string(configured) +
      "\n";
  if (passes > 0) out += "total number of tokens per iteration: " + std::to_string(12 * 1024 * passes) + "\n";
  out += "number of parameters: 123.59M\n";
  for (int step = 0; step <= 100; step += 10)
    out += "iter " + std::to_string(step) + ": loss 9.5000, time 2000.00ms, mfu " +
           (step == 0 ? "-100.00%\n" : "8.67%\n");
  return out;
}

Verdict tokens(const std::string& log, const char* set = "") {
  return judge("tokens_per_step", tests::read_text(log, set)).verdict;
}

TEST(PassesOfARankSpec, ThePassesAreTheConfiguredOnesOrEightTimesThese) {
  for (const int honest : {5, 40}) EXPECT_EQ(tokens(log_of(5, honest)), Verdict::holds) << honest;
  for (const int other : {3, 7, 39, 41}) EXPECT_EQ(tokens(log_of(5, other)), Verdict::contradicts) << other;
}

TEST(PassesOfARankSpec, AMultipleOrAPartMayBeOfRanks) {
  for (const int ranks : {1, 10, 20, 80})
    EXPECT_EQ(tokens(log_of(5, ranks)), Verdict::cannot_be_judged) << ranks;
}

/// Later ones divide the configured passes by the ranks and print all ranks' tokens, in a line that is lost.
TEST(PassesOfARankSpec, PassesThatTheReaderStatesAreDividedOnes) {
  for (const char* stated : {"accumulation=2,gpus=32", "accumulation=3,gpus=20"})
    EXPECT_EQ(tokens(log_of(64, 0), stated), Verdict::cannot_be_judged) << stated;
}

/// The rate of one rank stands beside one peak, but nothing says how many ranks the passes were divided by.
TEST(PassesOfARankSpec, OneRanksMfuWaitsForTheNumberOfGpus) {
  const Result mfu = judge("mfu_of_batch", tests::read_text(log_of(5, 5), ""));
  EXPECT_EQ(mfu.verdict, Verdict::cannot_be_judged);
  EXPECT_NE(mfu.note.find("number of GPUs"), std::string::npos) << mfu.note;
}

}  // namespace
}  // namespace assay::spec::audit::passes_of_a_rank_test
