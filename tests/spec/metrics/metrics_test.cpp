// labels: unit property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "spec/error.hpp"
#include "spec/metrics/metrics.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::metrics::metrics_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

using tests::label_of;

// The two runs of the report that this project starts from: 106,979 tokens/s is one rank's of two.
TEST(MetricsSpec, FirstReportByHand) {
  // 8.78 GFLOP * 106,979 / (4,500e12 * 2), the report's own reading: 10.44 %.
  EXPECT_NEAR(mfu(8.784e9, 106979, 4500e12, 2), 0.1044, 5e-5);
  EXPECT_NEAR(achieved_flops(8.784e9, 106979), 939.7e12, 0.1e12);
  // Both ranks' tokens over the dense peak: four times as much.
  EXPECT_NEAR(mfu(8.784e9, 2 * 106979.0, 2250e12, 2), 0.4176, 1e-4);
}

TEST(MetricsSpec, BudgetByHand) {
  // 82e9 tokens at 4,194,304 a step: 19,550.3 steps. 400,000 tokens/s: 205,000 s; 8 GPUs: 455.56 GPU hours.
  const Budget budget = metrics::budget(82e9, 1e10, 400000, 8, 4194304, 1000);
  EXPECT_EQ(budget.iterations, 19551);
  EXPECT_DOUBLE_EQ(budget.seconds, 205000);
  EXPECT_NEAR(budget.gpu_hours, 455.556, 1e-3);
  EXPECT_DOUBLE_EQ(*budget.energy, 8 * 1000 * 205000.0);
  EXPECT_DOUBLE_EQ(budget.flops, 8.2e20);
  EXPECT_FALSE(metrics::budget(1, 1, 1, 1).energy);
  EXPECT_FALSE(metrics::budget(1, 1, 1, 1).iterations);
}

TEST(MetricsSpec, ScalingEfficiencyByHand) {
  // 38,983 tokens/s on 4 GPUs against 10,471 on one: 93 %.
  EXPECT_NEAR(metrics::scaling_efficiency(38983, 4, 10471, 1), 0.93074, 1e-5);
  EXPECT_DOUBLE_EQ(metrics::scaling_efficiency(30, 6, 10, 2), 1);
  EXPECT_THROW(metrics::scaling_efficiency(0, 4, 1, 1), SpecError);  // metrics_c1
  EXPECT_THROW(metrics::scaling_efficiency(1, 0, 1, 1), SpecError);
  EXPECT_THROW(metrics::scaling_efficiency(1, 1, -1, 1), SpecError);
  EXPECT_THROW(metrics::scaling_efficiency(1, 1, 1, 0), SpecError);
}

TEST(MetricsSpec, C1RefusesWhatIsNotPositiveAndFinite) {
  for (double bad : {0.0, -1.0, nan, inf, -inf}) {
    EXPECT_EQ(label_of([&] { tokens_per_second(Count(10), bad); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { achieved_flops(bad, 1); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { achieved_flops(1, bad); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { utilisation(1, 1, bad, 1); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { tokens_per_second_at(bad, 1, 1, 1); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { budget(bad, 1, 1, 1); }), "metrics_c1");
    EXPECT_EQ(label_of([&] { budget(1, 1, 1, 1, 1, bad); }), "metrics_c1");
  }
  EXPECT_EQ(label_of([] { tokens_per_second(Count(0), 1); }), "metrics_c1");
  EXPECT_EQ(label_of([] { mfu(1, 1, 10, 0); }), "metrics_c1");
  EXPECT_EQ(label_of([] { mfu(1, 1, 10, -8); }), "metrics_c1");
  EXPECT_EQ(label_of([] { budget(1, 1, 1, 1, 0); }), "metrics_c1");
}

TEST(MetricsSpec, C2RefusesMoreThanAll) {
  EXPECT_EQ(mfu(1, 8, 2, 4), 1.0);
  EXPECT_EQ(label_of([] { mfu(1, 8.001, 2, 4); }), "metrics_c2");
  EXPECT_EQ(label_of([] { hfu(1, 8.001, 2, 4); }), "metrics_c2");
  EXPECT_EQ(label_of([] { tokens_per_second_at(1.01, 1, 1, 1); }), "metrics_c2");
  EXPECT_DOUBLE_EQ(utilisation(1, 16, 2, 4), 2.0);  // unjudged on purpose
}

TEST(MetricsSpec, C3RefusesMoreStepsThanIntegersHold) {
  EXPECT_EQ(label_of([] { budget(1e300, 1, 1, 1, 1); }), "metrics_c3");
}

RC_GTEST_PROP(MetricsSpecProperty, RateAndMfuAreInverse, ()) {
  const double fraction = *rc::gen::inRange(1, 1000) / 1000.0, peak = *rc::gen::inRange(1, 5000) * 1e12,
               flops = *rc::gen::inRange(1, 1000) * 1e9;
  const int gpus = *rc::gen::inRange(1, 20000);
  const double rate = tokens_per_second_at(fraction, flops, peak, gpus);
  RC_ASSERT(std::abs(utilisation(flops, rate, peak, gpus) - fraction) <= 4 * fraction * 0x1p-52);
}

RC_GTEST_PROP(MetricsSpecProperty, MoreGpusAtTheSameRateMeanLessMfuAndMoreGpuHours, ()) {
  const int gpus = *rc::gen::inRange(1, 1000), more = gpus + *rc::gen::inRange(1, 1000);
  RC_ASSERT(utilisation(1e9, 1e5, 1e15, more) < utilisation(1e9, 1e5, 1e15, gpus));
  RC_ASSERT(budget(1e9, 1e9, 1e5, more).gpu_hours > budget(1e9, 1e9, 1e5, gpus).gpu_hours);
  RC_ASSERT(budget(1e9, 1e9, 1e5, more).seconds == budget(1e9, 1e9, 1e5, gpus).seconds);
}

}  // namespace
}  // namespace assay::spec::metrics::metrics_test
