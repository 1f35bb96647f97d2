// labels: unit property
#include "spec/time/waterfall.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "spec/error.hpp"

namespace assay::spec::time::waterfall_test {
namespace {

MeasuredStep example() {
  return {.seconds = 1,
          .parts = {{StepOp::qkv, StepPass::forward, 1, 0.8},
                    {StepOp::attention, StepPass::backward, 1, 0.1},
                    {StepOp::rms_norm, StepPass::forward, 1, 0.06},
                    {StepOp::adamw, StepPass::update, 1, 0.02}},
          .between = 0.02,
          .data_wait = 0};
}

constexpr NeededFlops needed{.gemms = 600e12, .attention = 50e12, .peak = 1000e12};

std::string label_of(const MeasuredStep& step, const NeededFlops& flops = needed) {
  try {
    waterfall(step, flops);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "none";
}

TEST(WaterfallSpec, ExampleOfThePage) {
  const Waterfall out = waterfall(example(), needed);
  EXPECT_DOUBLE_EQ(out.mfu.value(), 0.65);
  ASSERT_EQ(out.bars.size(), 8u);
  const double expected[] = {0.65, 0.2, 0.05, 0.06, 0, 0.02, 0, 0.02};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(out.bars[i].seconds, expected[i], 1e-12) << i;
  EXPECT_EQ(out.bars.front().name, "exact FLOPs at the peak");
  EXPECT_EQ(out.bars.back().name, "gaps");
}

TEST(WaterfallSpec, WithoutAPeakThereAreSharesOfTheStepAndNoMfu) {
  const Waterfall out = waterfall(example(), {.gemms = 600e12, .attention = 50e12});
  EXPECT_FALSE(out.mfu);
  ASSERT_EQ(out.bars.size(), 7u);
  EXPECT_EQ(out.bars[0].name, "GEMMs");
  EXPECT_DOUBLE_EQ(out.bars[0].seconds, 0.8);
}

TEST(WaterfallSpec, C1RefusesPartsThatMissTheStep) {
  MeasuredStep step = example();
  step.parts[0].seconds += 0.009;
  EXPECT_EQ(label_of(step), "none");
  step.parts[0].seconds += 0.002;
  EXPECT_EQ(label_of(step), "waterfall_c1");
  step = example();
  step.between = 0;  // a part that nobody measured
  EXPECT_EQ(label_of(step), "waterfall_c1");
  EXPECT_THROW(check_sum(1, {0.5, 0.4}), SpecError);
  EXPECT_NO_THROW(check_sum(1, {0.5, 0.495}));
}

TEST(WaterfallSpec, C2RefusesTimesThatAreNone) {
  for (const double wrong :
       {-0.1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (int where = 0; where < 4; ++where) {
      MeasuredStep step = example();
      (where == 0   ? step.seconds
       : where == 1 ? step.between
       : where == 2 ? step.data_wait
                    : step.parts[1].seconds) = wrong;
      EXPECT_EQ(label_of(step), "waterfall_c2") << where << " " << wrong;
    }
  }
  EXPECT_EQ(label_of({}), "waterfall_c2");
}

TEST(WaterfallSpec, C3RefusesWhatNoGpuCanDo) {
  EXPECT_EQ(label_of(example(), {.gemms = 801e12, .attention = 50e12, .peak = 1000e12}), "waterfall_c3");
  EXPECT_EQ(label_of(example(), {.gemms = 600e12, .attention = 101e12, .peak = 1000e12}), "waterfall_c3");
}

RC_GTEST_PROP(WaterfallSpecProperty, BarsAddUpToTheStepAndTheirSharesToOne, ()) {
  MeasuredStep step;
  for (std::size_t op = 0; op < step_ops_count; ++op)
    step.parts.push_back(
        {static_cast<StepOp>(op), StepPass::forward, 1, *rc::gen::inRange(0, 1000000) * 1e-6});
  step.data_wait = *rc::gen::inRange(0, 1000) * 1e-6;
  step.between = step.data_wait + *rc::gen::inRange(1, 1000) * 1e-6;
  double whole = step.between;
  for (const MeasuredPart& part : step.parts) whole += part.seconds;
  step.seconds = whole * (1 + *rc::gen::inRange(-90, 90) * 1e-4);
  const double peak = *rc::gen::inRange(0, 2) * 1e12;
  const Waterfall out = waterfall(step, {.gemms = 0, .attention = 0, .peak = peak});
  double sum = 0;
  for (const WaterfallBar& bar : out.bars) sum += bar.seconds;
  RC_ASSERT(std::abs(sum - step.seconds) <= 1e-12 * (1 + whole));
  RC_ASSERT(out.mfu.has_value() == (peak > 0));
}

}  // namespace
}  // namespace assay::spec::time::waterfall_test
