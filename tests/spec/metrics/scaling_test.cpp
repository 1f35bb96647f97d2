// labels: unit property scaling
#include "spec/metrics/scaling.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::metrics::scaling_test {
namespace {

record::Step step_of(std::int64_t number, std::int64_t tokens, const record::Phases& phases) {
  record::Step step;
  step.step = number, step.tokens = tokens, step.loss = 3, step.sample_hash = std::to_string(number);
  step.phases = phases;
  step.seconds = phases.data_wait + phases.forward + phases.backward + phases.reduce + phases.clip +
                 phases.update + phases.checkpoint + phases.other;
  step.tokens_per_second = static_cast<double>(tokens) / step.seconds;
  return step;
}

record::Run run_of(std::int64_t ranks, const std::vector<record::Step>& steps) {
  record::Run run;
  run.start.batch.ranks = ranks, run.start.batch.sequences = 4 * ranks;
  for (std::int64_t r = 0; r < ranks; ++r) run.start.ranks.emplace_back().rank = r;
  run.steps = steps;
  return run;
}

TEST(ScalingSpec, TheExampleOfThePage) {
  const auto one = run_of(1, {step_of(1, 100, {.forward = 0.3, .backward = 0.6, .update = 0.1})});
  const auto two =
      run_of(2, {step_of(1, 200, {.forward = 0.3, .backward = 0.65, .reduce = 0.2, .update = 0.1})});
  const auto rows = scaling_table({two, one}, 0);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].ranks, 1);
  EXPECT_DOUBLE_EQ(rows[0].efficiency, 1);
  EXPECT_DOUBLE_EQ(rows[1].efficiency, 0.8);
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_second, 160);
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_second_of_rank, 80);
  EXPECT_DOUBLE_EQ(rows[1].exposed, 0.16);
  EXPECT_NEAR(rows[1].lost_waiting, 0.16, 1e-15);
  EXPECT_NEAR(rows[1].lost_compute, 0.04, 1e-15);
  EXPECT_NEAR(rows[1].lost_fixed, 0, 1e-15);
}

TEST(ScalingSpec, ARowIsOfItsStepsStageOfTheRamp) {
  auto run = run_of(1, {step_of(1, 100, {.forward = 0.3}), step_of(2, 200, {.forward = 0.7})});
  run.start.batch.sequences = 8, run.start.batch.accumulation = 4;
  run.start.settings.emplace_back("batch.ramp", std::vector<std::string>{"4:1"});
  const auto rows = scaling_table({run}, 0);
  EXPECT_EQ(rows[0].sequences, 4) << "of two steps the faster one, which is the first";
  EXPECT_EQ(rows[0].accumulation, 2);
  EXPECT_EQ(scaling_table({run}, 1)[0].sequences, 8);
}

TEST(ScalingSpec, TensorRanksAreRanks) {
  auto two = run_of(2, {step_of(1, 100, {.forward = 1})}),
       four = run_of(4, {step_of(1, 160, {.forward = 1})});
  two.start.batch.ranks = 1, four.start.batch.ranks = 2;
  two.start.tensor_ranks = four.start.tensor_ranks = 2;
  const auto rows = scaling_table({two, four}, 0);
  EXPECT_EQ(rows[1].ranks, 4);
  EXPECT_EQ(rows[1].tensor_ranks, 2);
  EXPECT_DOUBLE_EQ(rows[0].tokens_per_second_of_rank, 50);
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_second_of_rank, 40);
  EXPECT_DOUBLE_EQ(rows[1].efficiency, 0.8);
  EXPECT_EQ(rows[0].gpu, "");
}

TEST(ScalingSpec, AStepOfAllWaitsForTheSlowestGpu) {
  const auto fast = run_of(1, {step_of(1, 100, {.forward = 0.3, .backward = 0.5})});
  const auto slow = run_of(1, {step_of(1, 75, {.forward = 0.25, .backward = 0.5})});
  const auto both = run_of(2, {step_of(1, 200, {.forward = 0.3, .backward = 0.9, .reduce = 0.05})});
  const auto rows = scaling_table({both, fast, slow}, 0);
  ASSERT_EQ(rows.size(), 3u);
  // 125 and 100 tokens/s: 112.5 on average.
  EXPECT_DOUBLE_EQ(rows[0].efficiency, 125 / 112.5);
  EXPECT_DOUBLE_EQ(rows[0].lost_imbalance, 1 - 125 / 112.5);
  EXPECT_DOUBLE_EQ(rows[0].lost_compute, 0);
  EXPECT_DOUBLE_EQ(rows[1].efficiency, 100 / 112.5);
  EXPECT_DOUBLE_EQ(rows[2].efficiency, 80 / 112.5);
  const double kept = 100 / 112.5;
  EXPECT_NEAR(rows[2].lost_imbalance, 1 - kept, 1e-15);
  EXPECT_NEAR(rows[2].lost_waiting, kept * 0.04, 1e-15);
  EXPECT_NEAR(rows[2].lost_compute, kept * 0.16, 1e-15)
      << "against the slower one, which takes 1 s for as many";
}

TEST(ScalingSpec, ARankByItselfTellsItsGpu) {
  const auto step = step_of(1, 100, {.forward = 0.3, .backward = 0.5});
  auto one = run_of(1, {step}), two = run_of(2, {step}), cpu = run_of(1, {step});
  one.start.ranks[0].gpu = "GPU-a", two.start.ranks[0].gpu = "GPU-a", two.start.ranks[1].gpu = "GPU-b";
  const auto rows = scaling_table({one, cpu, two}, 0);
  EXPECT_EQ(rows[0].gpu, "GPU-a");
  EXPECT_EQ(rows[1].gpu, "");
  EXPECT_EQ(rows[2].gpu, "");
}

RC_GTEST_PROP(ScalingSpec, TheLostPartsAddUp, ()) {
  const auto seconds = [] { return 1e-3 * *rc::gen::inRange(1, 1000); };
  const auto draw = [&](std::int64_t ranks) {
    std::vector<record::Step> steps;
    const auto tokens = ranks * *rc::gen::inRange<std::int64_t>(1, 100);
    for (std::int64_t i = 1; i <= 5; ++i)
      steps.push_back(step_of(i, tokens,
                              {.data_wait = seconds(),
                               .forward = seconds(),
                               .backward = seconds(),
                               .reduce = seconds(),
                               .clip = seconds(),
                               .update = seconds(),
                               .other = seconds()}));
    return run_of(ranks, steps);
  };
  for (const ScalingRow& row : scaling_table({draw(1), draw(1), draw(2), draw(*rc::gen::inRange(3, 9))}, 2)) {
    const double lost = row.lost_imbalance + row.lost_waiting + row.lost_compute + row.lost_fixed;
    RC_ASSERT(std::abs(lost - (1 - row.efficiency)) < 1e-9 * std::max(1.0, row.efficiency));
    RC_ASSERT(std::abs(row.tokens_per_second - row.tokens_per_second_of_rank * double(row.ranks)) <
              1e-9 * row.tokens_per_second);
  }
}

TEST(ScalingSpec, C1RunsWithoutStepsThatCountAreRefused) {
  EXPECT_EQ(tests::label_of([] { scaling_table({}, 0); }), "scaling_c1");
  const auto run = run_of(2, {step_of(1, 100, {.forward = 1})});
  EXPECT_EQ(tests::label_of([&] { scaling_table({run}, 1); }), "scaling_c1");
}

TEST(ScalingSpec, C2OtherSamplesAreRefusedAndStepsCompared) {
  auto one = run_of(1, {step_of(1, 100, {.forward = 1}), step_of(2, 100, {.forward = 1})});
  for (auto& step : one.steps) step.gradient_norm = 2;
  auto two = run_of(2, one.steps);
  EXPECT_TRUE(agree(step_differences({one, two}), most_differences(Dtype::f64, 100)));
  two.steps[1].loss = 3.3;
  EXPECT_EQ(step_differences({one, two}).first_loss, 0);
  EXPECT_NEAR(step_differences({one, two}).later_loss, 0.1, 1e-12);
  two.steps[0].sample_hash = "other";
  EXPECT_EQ(tests::label_of([&] { step_differences({one, two}); }), "scaling_c2");
}

/// Of each number: just within and just beyond its bound, and no number.
TEST(ScalingSpec, C2StepsAgreeWithinTheirBoundsAlone) {
  constexpr double tokens = 4096;
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    const StepDifferences most = most_differences(dtype, tokens);
    EXPECT_LT(most.first_loss, most.first_gradient_norm);
    for (double StepDifferences::*which :
         {&StepDifferences::first_loss, &StepDifferences::first_gradient_norm,
          &StepDifferences::later_loss}) {
      StepDifferences found;
      found.*which = 0.99 * most.*which;
      EXPECT_TRUE(agree(found, most));
      found.*which = std::numeric_limits<double>::quiet_NaN();
      EXPECT_FALSE(agree(found, most));
      if (std::isinf(most.*which)) continue;
      found.*which = 1.01 * most.*which;
      EXPECT_FALSE(agree(found, most));
    }
  }
  EXPECT_DOUBLE_EQ(most_differences(Dtype::bf16, tokens).first_gradient_norm, 8 * 0x1p-8);
  EXPECT_DOUBLE_EQ(most_differences(Dtype::bf16, tokens).first_loss, 8 * 0x1p-8 / 64);
  EXPECT_DOUBLE_EQ(most_differences(Dtype::f32, tokens).first_gradient_norm, 512 * 0x1p-24);
}

/// One of four micro-batches left out of the sum, in bf16: the norm shows it where the loss does not.
TEST(ScalingSpec, C2AGradientThatLacksAMicroBatchIsDetectedByItsNorm) {
  auto one = run_of(1, {step_of(1, 8192, {.forward = 1})});
  one.steps[0].gradient_norm = 2;
  auto two = run_of(2, one.steps);
  two.steps[0].gradient_norm = 1.5;
  EXPECT_FALSE(agree(step_differences({one, two}), most_differences(Dtype::bf16, 8192)));
  two.steps[0].gradient_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(agree(step_differences({one, two}), most_differences(Dtype::bf16, 8192)));
}

}  // namespace
}  // namespace assay::spec::metrics::scaling_test
