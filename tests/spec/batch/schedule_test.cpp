// labels: unit property
#include "spec/batch/schedule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "spec/error.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::schedule_test {
namespace {

std::string label_of(const Schedule& schedule, std::int64_t step = 0) {
  try {
    learning_rate(schedule, step);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

/// A few roundings of numbers up to 1.
constexpr double rounding = 16 * unit_roundoff(Dtype::f64);

void expect_rates(const Schedule& schedule, const std::vector<double>& rates) {
  ASSERT_EQ(schedule.steps, static_cast<std::int64_t>(rates.size()));
  for (std::size_t step = 0; step < rates.size(); ++step)
    EXPECT_NEAR(learning_rate(schedule, static_cast<std::int64_t>(step)), rates[step], rounding)
        << "step " << step;
}

TEST(ScheduleSpec, CosineFollowsTheSpecExample) {
  const double root = std::sqrt(2.0);
  expect_rates({.kind = ScheduleKind::cosine, .peak = 1, .steps = 6, .warmup_steps = 2},
               {0.5, 1, (2 + root) / 4, 0.5, (2 - root) / 4, 0});
}

TEST(ScheduleSpec, WarmupStableDecayByHand) {
  Schedule schedule{.kind = ScheduleKind::wsd,
                    .peak = 1,
                    .steps = 10,
                    .warmup_steps = 4,
                    .decay_steps = 4,
                    .final_ratio = 0.2};
  expect_rates(schedule, {0.25, 0.5, 0.75, 1, 1, 1, 0.8, 0.6, 0.4, 0.2});
  schedule.decay_shape = DecayShape::one_minus_sqrt;
  expect_rates(schedule,
               {0.25, 0.5, 0.75, 1, 1, 1, 0.6, 1 - 0.8 * std::sqrt(0.5), 1 - 0.8 * std::sqrt(0.75), 0.2});
}

TEST(ScheduleSpec, ConstantByHand) {
  expect_rates({.kind = ScheduleKind::constant, .peak = 1, .steps = 3, .warmup_steps = 0}, {1, 1, 1});
  expect_rates({.kind = ScheduleKind::constant, .peak = 1, .steps = 3, .warmup_steps = 3},
               {1 / 3.0, 2 / 3.0, 1});
}

TEST(ScheduleSpec, ARunThatIsAllWarmUpEndsAtThePeak) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::wsd})
    expect_rates({.kind = kind, .peak = 2, .steps = 4, .warmup_steps = 4}, {0.5, 1, 1.5, 2});
}

TEST(ScheduleSpec, C1RejectsAPeakThatIsNotPositive) {
  for (double peak : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(label_of({.peak = peak, .steps = 1}), "schedule_c1");
}

TEST(ScheduleSpec, C2RejectsPartsThatDoNotFit) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(label_of({.peak = 1, .steps = 0}), "schedule_c2");
  EXPECT_EQ(label_of({.peak = 1, .steps = 5, .warmup_steps = 6}), "schedule_c2");
  EXPECT_EQ(label_of({.peak = 1, .steps = 5, .warmup_steps = -1}), "schedule_c2");
  for (std::int64_t decay : {std::int64_t{3}, std::int64_t{-1}, largest}) {
    Schedule schedule{
        .kind = ScheduleKind::wsd, .peak = 1, .steps = 5, .warmup_steps = 3, .decay_steps = decay};
    EXPECT_EQ(label_of(schedule), "schedule_c2");
    schedule.kind = ScheduleKind::cosine;  // does not read decay_steps
    EXPECT_EQ(label_of(schedule), "accepted");
  }
}

TEST(ScheduleSpec, C3RejectsAFinalRatioOutOfRange) {
  for (double ratio : {-0.1, 1.1, std::nan("")})
    EXPECT_EQ(label_of({.kind = ScheduleKind::cosine, .peak = 1, .steps = 5, .final_ratio = ratio}),
              "schedule_c3");
}

TEST(ScheduleSpec, C4RejectsStepsOutsideTheRun) {
  for (std::int64_t step : {-1, 5}) EXPECT_EQ(label_of({.peak = 1, .steps = 5}, step), "schedule_c4");
}

Schedule draw_schedule() {
  Schedule s;
  s.kind = *rc::gen::element(ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::wsd);
  s.decay_shape = *rc::gen::element(DecayShape::linear, DecayShape::one_minus_sqrt);
  s.peak = *rc::gen::element(1.0, 3e-4, 0.7);
  s.final_ratio = *rc::gen::element(0.0, 0.1, 0.5, 1.0);
  s.steps = *rc::gen::inRange<std::int64_t>(1, 200);
  s.warmup_steps = *rc::gen::inRange<std::int64_t>(0, s.steps + 1);
  s.decay_steps = *rc::gen::inRange<std::int64_t>(0, s.steps - s.warmup_steps + 1);
  return s;
}

RC_GTEST_PROP(ScheduleSpec, RisesToThePeakThenNeverRises, ()) {
  const Schedule s = draw_schedule();
  for (std::int64_t step = 0; step < s.steps; ++step) {
    const double rate = learning_rate(s, step);
    RC_ASSERT(rate <= s.peak && rate >= 0);
    if (step < s.warmup_steps)
      RC_ASSERT(std::abs(rate - s.peak * double(step + 1) / double(s.warmup_steps)) <= rounding);
    if (step == 0) continue;
    const double before = learning_rate(s, step - 1);
    if (step < s.warmup_steps)
      RC_ASSERT(rate > before);
    else
      RC_ASSERT(rate <= before * (1 + rounding));
    if (step >= s.warmup_steps) RC_ASSERT(rate >= s.final_ratio * s.peak * (1 - rounding));
  }
}

RC_GTEST_PROP(ScheduleSpec, EndsAtTheFinalRatioExactly, ()) {
  const Schedule s = draw_schedule();
  RC_PRE(s.kind != ScheduleKind::constant && s.warmup_steps < s.steps);
  RC_PRE(s.kind != ScheduleKind::wsd || s.decay_steps > 0);
  RC_ASSERT(learning_rate(s, s.steps - 1) == s.peak * s.final_ratio);
}

/// Neighbouring steps differ by at most the steepest slope of the parts: no jump where parts meet.
RC_GTEST_PROP(ScheduleSpec, HasNoJumps, ()) {
  Schedule s = draw_schedule();
  s.decay_shape = DecayShape::linear;  // 1 - sqrt falls infinitely fast at its start
  const auto slope = [](std::int64_t length, double factor) {
    return length > 0 ? factor / double(length) : 0.0;
  };
  const double fall = s.kind == ScheduleKind::cosine ? slope(s.steps - s.warmup_steps, std::acos(-1.0) / 2)
                                                     : slope(s.decay_steps, 1);
  const double steepest =
      s.peak * std::max(slope(s.warmup_steps, 1), s.kind == ScheduleKind::constant ? 0 : fall);
  for (std::int64_t step = 1; step < s.steps; ++step)
    RC_ASSERT(std::abs(learning_rate(s, step) - learning_rate(s, step - 1)) <= steepest + rounding);
}

}  // namespace
}  // namespace assay::spec::schedule_test
