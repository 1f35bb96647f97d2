// labels: unit
// Consoles of ms-swift, whose dictionaries say of a step which it is and how many are planned: the rates of
// its summary are of all steps, of which the last ones stand on no line.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "spec/audit/useful_options.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::ms_swift_test {
namespace {

/// A run of 94 steps with a line every 10.
struct MsSwift {
  int steps = 94, every = 10, batch = 128;
  double seconds = 5;                               ///< of a step
  bool says_plan = true, summary_says_plan = true;  ///< 'global_step/max_steps'; else lines say their 'step'
  std::string bar;                                  ///< the last one before the summary
  double steps_factor = 1, samples_factor = 1;      ///< of the rates of the summary

  RunRecord record(const std::string& set = "") const {
    char text[400];
    std::string log;
    double sum = 0;
    for (int step = 1; step <= steps; ++step) {
      const double loss = 2.5 - 0.01 * step;
      sum += loss;
      if (step % every != 0) continue;
      std::snprintf(text, sizeof text,
                    "{'loss': %.4f, 'grad_norm': %.8f, 'learning_rate': %.2e, 'memory(GiB)': 52.1, "
                    "'train_speed(iter/s)': %.6f, 'epoch': %.2f, ",
                    loss, 1.5 + std::sin(step), 1e-4 * (1 - step / 100.0), 1 / seconds, step / double(steps));
      log += text + (says_plan ? plan(step) : "'step': " + std::to_string(step)) + "}\n";
    }
    const double time = steps * seconds + 0.3;
    std::snprintf(text, sizeof text,
                  "{'train_runtime': %.4f, 'train_samples_per_second': %.3f, 'train_steps_per_second': %.3f, "
                  "'train_loss': %.8f, 'epoch': 1.0",
                  time, samples_factor * batch * steps / time, steps_factor * steps / time, sum / steps);
    log += bar + text + (summary_says_plan && says_plan ? ", " + plan(steps) : "") + "}\n";
    return tests::read_text(log, set);
  }

 private:
  std::string plan(int step) const {
    char text[200];
    std::snprintf(text, sizeof text,
                  "'global_step/max_steps': '%d/%d', 'percentage': '%.2f%%', 'elapsed_time': '%dm %ds'", step,
                  steps, 100.0 * step / steps, step / 12, 5 * step % 60);
    return text;
  }
};

std::string bar(const char* done) {
  return "\r100%|\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88| " + std::string(done) + " [07:50<00:00,  5.00s/it]\r" +
         std::string(60, ' ') + "\r";
}

TEST(MsSwiftSpec, TheRatesOfItsSummaryAreOfThePlannedSteps) {
  for (const bool summary_says_plan : {true, false}) {
    MsSwift run;
    run.summary_says_plan = summary_says_plan;
    const RunRecord record = run.record();
    EXPECT_TRUE(consistent(record)) << contradictions(record);
    ASSERT_TRUE(record[Setting::max_steps]);
    EXPECT_EQ(record[Setting::max_steps]->value, 94);
    EXPECT_EQ(record.steps.back()[Field::planned_steps]->value, 94);
    EXPECT_EQ(judge("average_steps_rate", record).verdict, Verdict::holds);
    EXPECT_EQ(judge("planned_steps", record).verdict, Verdict::holds);
    // As if 100 steps had been done in that time.
    run.steps_factor = 100.0 / 94;
    const Result told = judge("average_steps_rate", run.record());
    EXPECT_EQ(told.verdict, Verdict::contradicts);
    EXPECT_NEAR(told.recomputed.middle(), 94 / 470.3, 1e-4);
  }
  EXPECT_EQ(judge("planned_steps", MsSwift().record()).note,
            "the last line is of step 90, the summary of the last step");
  EXPECT_EQ(judge("planned_steps", MsSwift().record("max_steps=100")).verdict, Verdict::contradicts);
}

TEST(MsSwiftSpec, AResumedRunMayPlanOtherSteps) {
  const auto verdict = [](const std::vector<std::string>& steps) {
    std::string log;
    double loss = 3;
    for (const std::string& step : steps)
      log += "{'loss': " + std::to_string(loss -= 0.1) +
             ", 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.5, 'global_step/max_steps': '" + step +
             "'}\n";
    return judge("planned_steps", tests::read_text(log)).verdict;
  };
  EXPECT_EQ(verdict({"10/40", "20/40", "30/40", "40/40", "50/80", "60/80"}), Verdict::holds);
  EXPECT_EQ(verdict({"10/80", "20/80", "30/80", "40/80", "20/30", "30/30"}), Verdict::holds);
  EXPECT_EQ(verdict({"10/40", "20/40", "30/40", "40/40", "50/40"}), Verdict::contradicts);
}

TEST(MsSwiftSpec, TheBarBeforeTheSummarySaysThePlannedSteps) {
  MsSwift run;
  run.says_plan = false;
  for (const char* const done : {"94/94", "92/94"}) {
    run.bar = bar(done);
    const RunRecord record = run.record();
    ASSERT_TRUE(record[Setting::max_steps]) << done;
    EXPECT_EQ(record[Setting::max_steps]->value, 94) << done;
    EXPECT_TRUE(consistent(record)) << contradictions(record);
  }
  run.steps_factor = 98.0 / 94;
  EXPECT_EQ(judge("average_steps_rate", run.record()).verdict, Verdict::contradicts);
  // An evaluation's, and what is none.
  for (const char* const other : {"24/24", "94", "94/", "x/94"}) {
    run.bar = bar(other);
    EXPECT_FALSE(run.record()[Setting::max_steps]) << other;
  }
}

/// Steps behind the last line, up to the next one that would have been written, may have been done.
TEST(MsSwiftSpec, WhereNothingSaysTheEndTheLastStepsMayStandOnNoLine) {
  const auto verdict = [](double steps) {
    MsSwift run;
    run.says_plan = false, run.steps_factor = steps / 94;
    return judge("average_steps_rate", run.record()).verdict;
  };
  for (const double possible : {90, 94, 99}) EXPECT_EQ(verdict(possible), Verdict::holds) << possible;
  for (const double impossible : {45, 104, 120})
    EXPECT_EQ(verdict(impossible), Verdict::contradicts) << impossible;
}

/// The batch that an option would state is tried with a number of its own.
TEST(MsSwiftSpec, ABatchThatIsTriedOnARunOfUnknownLengthIsJudged) {
  for (const bool says_plan : {true, false}) {
    MsSwift run;
    run.seconds = 4.97, run.every = 23, run.says_plan = says_plan;
    const RunRecord record = run.record();
    EXPECT_EQ(record.steps.back()[Field::step]->value, 92);
    EXPECT_NO_THROW(useful_options(record)) << says_plan;
    EXPECT_TRUE(consistent(record)) << contradictions(record);
  }
  MsSwift run;
  run.says_plan = false, run.every = 1, run.batch = 256;
  const Result told = judge("average_sequences_rate", run.record("sequences=64"));
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  ASSERT_FALSE(told.causes.empty());
  EXPECT_EQ(told.causes.front().id, "average_of_other_time");
}

}  // namespace
}  // namespace assay::spec::audit::ms_swift_test
