// labels: unit
// How far chance may move a number that is derived from others: steps that are not logged, losses of new
// weights.
#include <gtest/gtest.h>

#include <cmath>

#include "spec/audit/invariants.hpp"
#include "spec/audit/unlogged_steps.hpp"
#include "spec/random/philox.hpp"

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
  EXPECT_EQ(verdict("wall_clock", sampled(0.002, 0.88)), Verdict::contradicts) << "steady steps tell 12 %";
  EXPECT_EQ(verdict("wall_clock", sampled(0.1, 0.88)), Verdict::holds) << "restless ones do not";
  EXPECT_EQ(verdict("wall_clock", sampled(0.1, 0.75)), Verdict::contradicts);
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
  EXPECT_EQ(total(0.002, 195), Verdict::contradicts);
  EXPECT_EQ(total(0.1, 195), Verdict::holds);
}

TEST(BoundsOfChanceSpec, AMeanOfEveryStepLiesAboutWhereTheLoggedOnesDo) {
  const auto mean = [](double spread, double seconds) {
    RunRecord r = sampled(spread, 1);
    r[Setting::average_seconds] = measured(seconds, 0.0005);
    return verdict("average_seconds", r);
  };
  EXPECT_EQ(mean(0.002, 2.005), Verdict::holds);
  EXPECT_EQ(mean(0.002, 2.08), Verdict::holds) << "pauses";
  EXPECT_EQ(mean(0.002, 2.12), Verdict::contradicts);
  EXPECT_EQ(mean(0.002, 1.75), Verdict::contradicts);
  EXPECT_EQ(mean(0.1, 2.3), Verdict::holds);
}

TEST(BoundsOfChanceSpec, AMeanRateOfEveryStepMayBeFasterByWhatLoggingTakes) {
  const auto mean = [](double rate) {
    RunRecord r = sampled(0.002, 1);
    for (Step& step : r.steps)
      step[Field::tokens_per_second] = measured(8192 / step[Field::seconds]->value, 0.5);
    r[Setting::average_tokens_per_second] = measured(rate, 0.5);
    return verdict("average_rate", r);
  };
  EXPECT_EQ(mean(4096), Verdict::holds);
  EXPECT_EQ(mean(4096 * 1.08), Verdict::holds);
  EXPECT_EQ(mean(4096 * 1.15), Verdict::contradicts);
  EXPECT_EQ(mean(4096 * 0.97), Verdict::holds);
  EXPECT_EQ(mean(4096 * 0.9), Verdict::contradicts);
}

/// Logging waits for the GPU, gathers and writes: logged steps are slower, all by as much.
TEST(BoundsOfChanceSpec, LoggedStepsMayBeSlowerThanTheOthers) {
  const auto log = [](double step, double logging, double half, double lie) {
    RunRecord r = sampled(0, 1);
    for (std::size_t i = 0; i < r.steps.size(); ++i) {
      r.steps[i][Field::seconds] = measured(step + logging, half);
      r.steps[i][Field::elapsed] = measured(static_cast<double>(i + 1) * (10 * step + logging) * lie, 0.005);
    }
    r[Setting::total_seconds] = measured(12 * (10 * step + logging) * lie, 0.05);
    r[Setting::average_seconds] = measured((step + logging / 10) * lie, 0.00005);
    return r;
  };
  for (const char* id : {"wall_clock", "total_seconds", "average_seconds"}) {
    EXPECT_EQ(verdict(id, log(0.5, 0.02, 0.00005, 1)), Verdict::holds) << id;
    EXPECT_EQ(verdict(id, log(0.5, 0.05, 0.00005, 1)), Verdict::holds) << id;
    EXPECT_EQ(verdict(id, log(0.02, 0.004, 0.00005, 1)), Verdict::holds) << id << ", short steps";
    EXPECT_EQ(verdict(id, log(0.5, 0.02, 0.00005, 0.85)), Verdict::contradicts) << id;
    // One digit of two leaves as much open: 0.36 s printed 0.4, and 0.0366 s printed 0.037.
    EXPECT_EQ(verdict(id, log(0.4, 0, 0.05, 0.9)), Verdict::holds) << id;
    EXPECT_EQ(verdict(id, log(0.037, 0, 0.0005, 0.0366 / 0.037)), Verdict::holds) << id;
    EXPECT_EQ(verdict(id, log(0.4, 0, 0.05, 0.5)), Verdict::contradicts) << id;
  }
}

/// What the header says of eight draws and four: expected 22 of 200,000 above, and as many below.
TEST(BoundsOfChanceSpec, NormalStepsSeldomLieBeyondTheLoggedOnes) {
  const random::Stream stream(11, random::Site::test, 8);
  constexpr int times = 200'000;
  std::uint64_t at = 0;
  int beyond = 0;
  for (int i = 0; i < times; ++i) {
    std::vector<Interval> logged(8);
    for (Interval& each : logged) each = exact_interval(1000 + stream.normal(at++));
    double mean = 0;
    for (int n = 0; n < 4; ++n) mean += (1000 + stream.normal(at++)) / 4;
    beyond += mean > unlogged_times(logged)->high;
  }
  EXPECT_GT(beyond, 5);
  EXPECT_LT(beyond, 45);
}

TEST(BoundsOfChanceSpec, AFirstLossIsHeldToWhatNewWeightsMake) {
  const auto first = [](double vocab, double width, double above_level) {
    RunRecord r;
    r.weights = "new";
    r[Setting::vocab] = exactly(vocab);
    if (width > 0) r[Setting::width] = exactly(width);
    r[Setting::tokens_per_step] = exactly(8192);
    Step step;
    step[Field::step] = exactly(1, 1);
    step[Field::loss] = measured(std::log(vocab) + above_level, 0.0005);
    r.steps = {step};
    return verdict("first_loss", r);
  };
  // Half of the targets may be one token, whose logit is five deviations off: sqrt(S) 5 / 2, with S = 1.
  EXPECT_EQ(first(50257, 768, -2.5), Verdict::holds);
  EXPECT_EQ(first(50257, 768, -4.6), Verdict::holds) << "a tied head knows its input";
  EXPECT_EQ(first(50257, 768, -5), Verdict::contradicts);
  EXPECT_EQ(first(50257, 768, -std::log(50257) / 2), Verdict::contradicts) << "divided once too often";
  EXPECT_EQ(first(50257, 768, 2.8), Verdict::holds);
  EXPECT_EQ(first(50257, 768, 3.2), Verdict::contradicts);
  EXPECT_EQ(first(50257, 4096, 3.2), Verdict::holds) << "logits grow with the width";
  EXPECT_EQ(first(50257, 4096, std::log(50257) * (1 / std::log(2) - 1)), Verdict::contradicts) << "bits";
  // No width: Llama 3.1 405B's V and D make 15.04 in the mean.
  const auto unsaid = std::nan("");
  EXPECT_EQ(first(128256, unsaid, 15.04 - std::log(128256)), Verdict::holds);
  EXPECT_EQ(first(128256, unsaid, 8), Verdict::holds);
  EXPECT_EQ(first(128256, unsaid, 12), Verdict::contradicts);
}

/// Bits, and a sum over two passes, are both within what chance allows: bits leave log V.
TEST(BoundsOfChanceSpec, TheFactorThatLeavesTheUsualFirstLossIsNamedFirst) {
  RunRecord r;
  r[Setting::vocab] = exactly(50257);
  r[Setting::width] = exactly(768);
  r[Setting::accumulation] = exactly(2);
  Step step;
  step[Field::step] = exactly(1, 1);
  step[Field::loss] = measured(std::log(50257) / std::log(2), 0.0005);
  r.steps = {step};
  const Result bits = judge("first_loss", r);
  ASSERT_EQ(bits.causes.size(), 2u);
  EXPECT_EQ(bits.causes.front().id, "loss_in_bits");
}

}  // namespace
}  // namespace assay::spec::audit::bounds_of_chance_test
