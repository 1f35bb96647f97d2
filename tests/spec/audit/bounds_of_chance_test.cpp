// labels: unit
// How far chance may move a number that is derived from others: steps that are not logged, losses of new
// weights.
#include <gtest/gtest.h>

#include <cmath>

#include "spec/audit/invariants.hpp"

namespace assay::spec::audit::bounds_of_chance_test {
namespace {

Printed measured(double value, double half) { return {value, value - half, value + half, 1}; }

Verdict verdict(std::string_view id, const RunRecord& record) { return judge(id, record).verdict; }

/// Every tenth step is logged, of `spread` around two seconds; the clock shows `share` of what they make.
RunRecord sampled(double spread, double share) {
  RunRecord r;
  for (int i = 1; i <= 12; ++i) {
    Step step;
    step.line = i;
    step[Field::step] = exactly(10 * i, i);
    step[Field::seconds] = measured(2 + spread * (i % 2 ? 1 : -1), 0.0005);
    step[Field::elapsed] = measured(20 * i * share, 0.0005);
    r.steps.push_back(step);
  }
  r.steps_seen = 12;
  return r;
}

TEST(BoundsOfChanceSpec, StepsThatAreNotLoggedAreAboutAsThoseThatAre) {
  EXPECT_EQ(verdict("wall_clock", sampled(0.002, 1)), Verdict::holds);
  EXPECT_EQ(verdict("wall_clock", sampled(0.002, 0.95)), Verdict::contradicts) << "steady steps tell 5 %";
  EXPECT_EQ(verdict("wall_clock", sampled(0.1, 0.95)), Verdict::holds) << "restless ones do not";
  EXPECT_EQ(verdict("wall_clock", sampled(0.1, 0.8)), Verdict::contradicts);
  RunRecord chance = sampled(0.1, 1);  // two logged steps of three were slow, those between were as ever
  for (std::size_t i = 0; i < chance.steps.size(); ++i)
    chance.steps[i][Field::seconds] = measured(i % 3 == 0 ? 1.8 : 2.1, 0.0005);
  EXPECT_EQ(verdict("wall_clock", chance), Verdict::holds);
  RunRecord r = sampled(0.002, 0.9);
  r.steps.erase(r.steps.begin() + 5, r.steps.end());
  EXPECT_EQ(verdict("wall_clock", r), Verdict::holds) << "five lines tell little of the others";
  for (Step& step : r.steps) step[Field::elapsed] = measured(0.6 * step[Field::elapsed]->value, 0.0005);
  EXPECT_EQ(verdict("wall_clock", r), Verdict::contradicts) << "but half is half";
}

TEST(BoundsOfChanceSpec, ATotalTimeIsHeldAsTheStepsAreSteady) {
  const auto total = [](double spread, double seconds) {
    RunRecord r = sampled(spread, 1);
    r[Setting::total_seconds] = measured(seconds, 0.05);
    return verdict("total_seconds", r);
  };
  // The first line stands for its own step, 2 s, the others for ten each: 222 s.
  EXPECT_EQ(total(0.002, 222), Verdict::holds);
  EXPECT_EQ(total(0.002, 215), Verdict::contradicts);
  EXPECT_EQ(total(0.1, 215), Verdict::holds);
}

TEST(BoundsOfChanceSpec, AMeanOfEveryStepLiesAboutWhereTheLoggedOnesDo) {
  const auto mean = [](double spread, double seconds) {
    RunRecord r = sampled(spread, 1);
    r[Setting::average_seconds] = measured(seconds, 0.0005);
    return verdict("average_seconds", r);
  };
  EXPECT_EQ(mean(0.002, 2.005), Verdict::holds);
  EXPECT_EQ(mean(0.002, 2.05), Verdict::contradicts);
  EXPECT_EQ(mean(0.1, 2.25), Verdict::holds);
}

/// Bytes repeat themselves more than words do, and so their first losses are spread more widely.
TEST(BoundsOfChanceSpec, AFirstLossIsHeldToWhatNewWeightsMake) {
  const auto first = [](double vocab, double width, double above_level) {
    RunRecord r;
    r.weights = "new";
    r[Setting::vocab] = exactly(vocab);
    r[Setting::width] = exactly(width);
    r[Setting::tokens_per_step] = exactly(8192);
    Step step;
    step[Field::step] = exactly(1, 1);
    step[Field::loss] = measured(std::log(vocab) + above_level, 0.0005);
    r.steps = {step};
    return verdict("first_loss", r);
  };
  EXPECT_EQ(first(50257, 768, -0.25), Verdict::holds);
  EXPECT_EQ(first(50257, 768, -0.4), Verdict::contradicts);
  EXPECT_EQ(first(256, 768, -0.4), Verdict::holds);
  EXPECT_EQ(first(50257, 768, 1.0), Verdict::holds);
  EXPECT_EQ(first(50257, 768, 1.3), Verdict::contradicts);
  EXPECT_EQ(first(50257, 4096, 1.3), Verdict::holds) << "logits grow with the width";
}

}  // namespace
}  // namespace assay::spec::audit::bounds_of_chance_test
