// labels: unit
// The tokens, tokens/s and FLOPs that Hugging Face's Trainer states of a run, against its time and its GPUs.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/hugging_face_state.hpp"

namespace assay::spec::audit::summaries_hugging_face_tokens_test {
namespace {

using State = tests::HuggingFaceState;

// 100 steps in 1,000 s: 8 H100 do at most 7.9e18 FLOP in that time, and 6 N of llama3-8b is 45 GFLOP per
// token (4 N where adapters alone are trained: 30).
TEST(SummariesHuggingFaceSpec, TokensOfTheRunAreNoMoreThanItsGpusCompute) {
  const std::string machine = "gpus=8,gpu=NVIDIA H100 80GB HBM3,model=llama3-8b";
  const auto of = [&](const State& state) { return judge("average_speed", state.record(machine)); };
  State honest, tokens, rate, flops;
  honest.tokens_per_step = 8e5, honest.tokens_per_second = 8e4, honest.total_flos = 6 * 7.5e9 * 8e7;
  EXPECT_EQ(of(honest).verdict, Verdict::holds);
  EXPECT_EQ(judge("total_flops", honest.record(machine)).verdict, Verdict::holds);
  EXPECT_GT(of(honest).printed, 0.25);
  EXPECT_LT(of(honest).printed, 0.35);
  // 163 % by 6 N.
  tokens.tokens_per_step = 2.87e6, rate.tokens_per_second = 2.87e5, flops.total_flos = 1.63 * 7.92e18;
  for (const State& state : {tokens, rate, flops}) {
    const Result speed = of(state);
    EXPECT_EQ(speed.verdict, Verdict::contradicts) << speed.note;
    ASSERT_EQ(speed.causes.size(), 1u);
    EXPECT_EQ(speed.causes[0].id, "speed_impossible");
  }
  // total_flos speaks without a model.
  EXPECT_EQ(judge("average_speed", flops.record("gpus=8,gpu=NVIDIA H100 80GB HBM3")).verdict,
            Verdict::contradicts);
  EXPECT_EQ(judge("average_speed", flops.record("gpu=NVIDIA H100 80GB HBM3")).verdict,
            Verdict::cannot_be_judged);
}

TEST(SummariesHuggingFaceSpec, TokensBeforeAResumeAreOfAnotherTime) {
  State resumed;
  resumed.tokens_per_step = 2.87e6, resumed.total_flos = 1e20;
  resumed.train_loss = 0.4 * 1.125;  // of 40 steps, over 100
  EXPECT_EQ(
      judge("average_speed", resumed.record("gpus=8,gpu=NVIDIA H100 80GB HBM3,model=llama3-8b")).verdict,
      Verdict::cannot_be_judged);
}

/// 262,144 tokens a step and 1,000 s: 26,214.4 of them a second.
TEST(SummariesHuggingFaceSpec, TokensPerSecondAreThoseSeenOrOneRanks) {
  State state;
  state.tokens_per_step = 262144;
  for (const double honest : {26214.4, 26214.4 / 8}) {
    state.tokens_per_second = honest;
    EXPECT_EQ(state.of("average_rate").verdict, Verdict::holds) << state.of("average_rate").note;
  }
  EXPECT_NE(state.of("average_rate").note.find("one rank of 8"), std::string::npos);
  EXPECT_EQ(judge("average_rate", state.record("gpus=8")).verdict, Verdict::holds);
  EXPECT_EQ(judge("average_rate", state.record("gpus=4")).verdict, Verdict::contradicts);
  for (const double lie : {26214.4 * 1.2, 26214.4 * 8, 26214.4 / 1.5, 26214.4 / 8 * 1.1}) {
    state.tokens_per_second = lie;
    EXPECT_EQ(state.of("average_rate").verdict, Verdict::contradicts) << lie;
  }
  // After a resume the tokens go on, and the time begins anew.
  state.train_loss = 0.6;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
}

/// Batches of unequal tokens: padding that is not counted as seen, or a first batch that stood for all
/// (max_steps), makes the rate another one, above or below, of all ranks or of one.
TEST(SummariesHuggingFaceSpec, PaddingAndAFirstBatchMakeAnotherRateOfTokens) {
  State state;
  state.tokens_per_step = 12800, state.batches_differ = 0.003;
  state.tokens_per_second = 1280;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::holds) << state.of("average_rate").note;
  for (const double honest : {1280 * 1.25, 1280 * 1.12, 1280 * 0.88, 1280 * 1.25 / 8}) {
    state.tokens_per_second = honest;
    const Result rate = state.of("average_rate");
    EXPECT_EQ(rate.verdict, Verdict::cannot_be_judged) << honest << ": " << rate.note;
    EXPECT_NE(rate.note.find("padding"), std::string::npos) << rate.note;
    EXPECT_NE(rate.note.find("first batch"), std::string::npos) << rate.note;
  }
  // All tokens that follow are alike: no mask and no batch makes another rate.
  state.batches_differ = 0, state.tokens_per_second = 1280 * 1.12;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::contradicts);
  // But not where a line has one token more, or where two lines are too few to show it.
  state.batches_differ = 1.0 / 128000;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
  state.batches_differ = 0, state.last = 20, state.max_steps = 20, state.train_loss = 1.475;
  state.steps_per_second = 0.02, state.samples_per_second = 0.64, state.tokens_per_second = 256 * 1.12;
  EXPECT_EQ(state.of("average_loss").verdict, Verdict::holds);
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
}

TEST(SummariesHuggingFaceSpec, TheRateOfTheRunIsThatOfTheTokensSeen) {
  State state;
  const auto rate = [&] {
    const RunRecord record = state.record();
    return audit(record).readings.front().corrected.tokens_per_second;
  };
  EXPECT_FALSE(rate());
  state.tokens_per_step = 262144;
  ASSERT_TRUE(rate());
  EXPECT_NEAR(rate()->middle(), 26214.4, 0.01);
  state.last = 90;  // steps that no line counts
  EXPECT_FALSE(rate());
  state.last = 100, state.steps_per_second = 0.2;  // a time that the summary denies
  EXPECT_FALSE(rate());
  state.steps_per_second = 0.1, state.tokens_per_second = 99999;
  EXPECT_FALSE(rate());
}

}  // namespace
}  // namespace assay::spec::audit::summaries_hugging_face_tokens_test
