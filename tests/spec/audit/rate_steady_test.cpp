// labels: unit
// Steps that are far faster than the others: a mistake, unless the machine or a second clock speaks for them.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::rate_steady_test {
namespace {

/// 200 steps of 4,096 tokens; `seconds` of each. Stamps where `clock` says so.
RunRecord steps_of(const std::function<double(int)>& seconds, bool clock = false) {
  std::ostringstream out;
  out << "step,seconds,tokens_per_second,elapsed\n";
  double elapsed = 0;
  for (int i = 1; i <= 200; ++i) {
    elapsed += seconds(i);
    out << i << "," << seconds(i) << "," << 4096 / seconds(i) << "," << elapsed << "\n";
  }
  ReadOptions options;
  options.map = "step=step,seconds=seconds,tokens_per_second=tokens_per_second";
  if (clock) options.map += ",elapsed=elapsed";
  std::istringstream in(out.str());
  return read_log(in, "steps.csv", options);
}

double steady(int i) { return i % 50 == 7 ? 0.05 : 0.25 + 0.001 * (i % 11); }

TEST(RateSteadySpec, AJumpAmongSteadyStepsContradicts) {
  const Result told = judge("rate_steady", steps_of(steady));
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 4);
  EXPECT_EQ(told.lines.front(), 8);
}

/// Lines that are cut lose their rate and keep their time: tokens/s beside steps/s are no jump.
TEST(RateSteadySpec, RatesAreOfOneUnit) {
  for (const int of_rate : {2, 190}) {
    RunRecord record = steps_of([](int i) { return 0.25 + 0.001 * (i % 11); });
    for (std::size_t i = 0; i < record.steps.size(); ++i)
      if (static_cast<int>(i) >= of_rate) record.steps[i][Field::tokens_per_second].reset();
    EXPECT_EQ(judge("rate_steady", record).verdict, Verdict::holds) << of_rate;
  }
}

TEST(RateSteadySpec, AJumpThatTheClockShowsIsReal) {
  const RunRecord record = steps_of(steady, true);
  EXPECT_EQ(judge("rate_steady", record).verdict, Verdict::holds) << contradictions(record);
  RunRecord moved = record;
  for (Step& step : moved.steps)
    if (step[Field::step]->value >= 57)
      step[Field::elapsed] = exactly(step[Field::elapsed]->value + 0.2, step.line);
  const Result told = judge("rate_steady", moved);
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{58}));
}

/// A machine that others use: no step is like the next, and what is far from most is not far from all.
TEST(RateSteadySpec, FarIsFartherWhereStepsVaryMore) {
  const auto busy = [](int i) { return i % 50 == 7 ? 0.04 : 0.2 + 0.004 * ((i * 37) % 100); };
  EXPECT_EQ(judge("rate_steady", steps_of(busy)).verdict, Verdict::holds);
  const auto jump = [&](int i) { return i == 57 ? 0.002 : busy(i); };
  EXPECT_EQ(judge("rate_steady", steps_of(jump)).verdict, Verdict::contradicts);
}

/// As long as its batch is large; the batch grows from 32 to 1,024 sequences.
RunRecord ramp(bool batch_printed, double seconds_of_last) {
  RunRecord record;
  record.format.name = "megatron";
  for (int i = 1; i <= 200; ++i) {
    const double batch = i <= 15 ? 32 : i <= 100 ? 256 : 1024;
    Step step;
    step.line = i;
    step[Field::step] = exactly(i, i);
    step[Field::seconds] = exactly(i == 200 ? seconds_of_last : batch / 128, i);
    if (batch_printed) step[Field::step_sequences] = exactly(batch, i);
    record.steps.push_back(step);
  }
  record.steps_seen = 200;
  return record;
}

TEST(RateSteadySpec, AGrowingBatchIsJudgedByWhatAStepDoes) {
  EXPECT_EQ(judge("rate_steady", ramp(true, 8)).verdict, Verdict::holds);
  // Four times as fast as any: its small batches take as little, and do not hide it.
  EXPECT_EQ(judge("rate_steady", ramp(true, 2)).verdict, Verdict::contradicts);
}

TEST(RateSteadySpec, SpreadDoesNotForgiveEverything) {
  EXPECT_EQ(judge("rate_steady", ramp(false, 8)).verdict, Verdict::holds);
  EXPECT_EQ(judge("rate_steady", ramp(false, 0.04)).verdict, Verdict::contradicts);
}

/// The machine is free, other GPUs: the last lines are four times as fast, and as steady as those before.
TEST(RateSteadySpec, ARunThatGoesOnFasterHasAnotherSpeed) {
  const auto faster = [](int from, int to, double times) {
    return [=](int i) { return (0.25 + 0.001 * (i % 11)) / (i >= from && i <= to ? times : 1); };
  };
  for (const auto& [from, to] : {std::pair{189, 200}, {196, 200}, {60, 70}}) {
    const Result told = judge("rate_steady", steps_of(faster(from, to, 4)));
    EXPECT_EQ(told.verdict, Verdict::holds) << from;
    EXPECT_NE(told.note.find(std::to_string(to - from + 1) + " in a row"), std::string::npos) << told.note;
  }
  EXPECT_EQ(judge("rate_steady", steps_of(faster(197, 200, 4))).verdict, Verdict::contradicts) << "four";
  EXPECT_EQ(judge("rate_steady", steps_of(faster(189, 200, 1000))).verdict, Verdict::contradicts) << "k";
  const auto restless = [](int i) { return i < 189 ? 0.25 : i % 2 ? 0.03 : 0.06; };
  EXPECT_EQ(judge("rate_steady", steps_of(restless)).verdict, Verdict::contradicts) << "two speeds";
}

}  // namespace
}  // namespace assay::spec::audit::rate_steady_test
