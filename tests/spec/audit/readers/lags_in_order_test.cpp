// labels: unit
// Steps that nobody counts may have been left out, and each waits in the schedule: but in one order.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/readers/megatron_arguments.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::lags_in_order_test {
namespace {

using megatron_arguments_test::Arguments;
using megatron_arguments_test::cosine;
using megatron_arguments_test::run;

Result of_schedule(const std::string& log) { return judge("learning_rate", tests::read_text(log)); }

const Arguments half = {
    {"fp16", "True"}, {"bf16", "False"}, {"lr_warmup_iters", "20"}, {"lr_decay_iters", "120"}};

Arguments pipeline() {
  Arguments out = half;
  out["deepspeed"] = out["ds_pipeline_enabled"] = "True";
  return out;
}

/// By the place on the schedule at each step.
template <class Place>
auto at(const Place& place) {
  return [=](double step, double) { return cosine(place(step), 20, 120); };
}

TEST(LagsInOrderSpec, ARunDoesNotGoBackOnItsSchedule) {
  EXPECT_EQ(of_schedule(run(pipeline(), at([](double i) { return std::floor(i / 3); }))).verdict,
            Verdict::holds);
  EXPECT_EQ(
      of_schedule(run(pipeline(), at([](double i) { return i < 40 ? i : std::floor(20 + i / 2); }))).verdict,
      Verdict::holds)
      << "over the top";
  // Every one of these places is behind its step.
  const auto scattered = [](double i) { return std::floor(i * std::fmod(0.618 * i, 1)); };
  EXPECT_EQ(of_schedule(run(pipeline(), at(scattered))).verdict, Verdict::contradicts);
  const auto back = [](double i) { return i < 70 ? i : i - 30; };
  EXPECT_EQ(of_schedule(run(pipeline(), at(back))).verdict, Verdict::contradicts) << "thirty in one step";
}

TEST(LagsInOrderSpec, ARunGoesOnByNoMoreStepsThanItMakes) {
  const auto leaps = [](double i) { return i < 70 ? std::floor(i / 2) : i; };
  EXPECT_EQ(of_schedule(run(pipeline(), at(leaps))).verdict, Verdict::contradicts);
}

/// Lines that count what is left out leave one number open behind a gap.
TEST(LagsInOrderSpec, BehindLostLinesAllLinesLagAlike) {
  const auto without_middle = [](const auto& place) {
    std::string log = run(half, at(place));
    const std::size_t from = log.find("iteration       31/"), to = log.find("iteration       61/");
    return of_schedule(log.erase(log.rfind('\n', from), log.rfind('\n', to) - log.rfind('\n', from)));
  };
  const Result honest = without_middle([](double i) { return i < 50 ? i : i - 20; });
  EXPECT_EQ(honest.verdict, Verdict::holds);
  EXPECT_NE(honest.note.find("whose lines are not there"), std::string::npos) << honest.note;
  for (const double other : {0.0, 10.0, 21.0})
    EXPECT_EQ(
        without_middle([&](double i) { return i < 50 ? i : i - (std::fmod(i, 2) > 0 ? 20 : other); }).verdict,
        Verdict::contradicts)
        << other;
  EXPECT_EQ(without_middle([](double i) { return i < 50   ? i
                                                 : i < 80 ? i - 10
                                                          : i - 20; }).verdict,
            Verdict::contradicts)
      << "left out where every line says none was";
}

}  // namespace
}  // namespace assay::spec::audit::lags_in_order_test
