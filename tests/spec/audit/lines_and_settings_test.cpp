// labels: unit
// What step lines say of the run as a whole - its batch, its steps, its memory - against what the settings
// say; and logs that end in a loss that is no number. Times and rates against a clock:
// clock_and_rates_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::lines_and_settings_test {
namespace {

using tests::first_cause;
using tests::read_text;

/// Megatron's arguments and eight lines.
struct Megatron {
  int configured = 512, of_line = 512, consumed = 512;  // sequences
  int train_iters = 500, planned = 500;
  int left_out = 0;  // at the end, whose loss was no number
  int first = 1;

  std::string log() const {
    std::ostringstream out;
    out << "------------------------ arguments ------------------------\n"
           "  global_batch_size ............................... "
        << configured << "\n  rampup_batch_size ............................... None\n"
        << "  train_iters ..................................... " << train_iters << "\n"
        << "-------------------- end of arguments ---------------------\n";
    for (int i = first; i < first + 8; ++i) {
      const bool none = i >= first + 8 - left_out;
      out << " iteration        " << i << "/     " << planned << " | consumed samples: " << i * consumed
          << " | elapsed time per iteration (ms): 1131.1 | learning rate: 6.000000E-07 | global batch size:  "
          << of_line << " |" << (none ? "" : " lm loss: 1.200000E+01 |")
          << " loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:   " << none
          << " | number of nan iterations:   " << none << " |\n";
    }
    return out.str();
  }
  RunRecord record() const { return read_text(log()); }
};

TEST(LinesAndSettingsSpec, LinesThatSayAnotherBatchThanTheArgumentsContradict) {
  EXPECT_TRUE(consistent(Megatron().record())) << contradictions(Megatron().record());
  // The lines and what they count agree: so much was performed, not what is configured.
  const RunRecord performed = Megatron{.of_line = 256, .consumed = 256}.record();
  const Result told = judge("step_sequences", performed);
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.printed, 256);
  EXPECT_EQ(told.contradicted, 8);
  const Audit audited = audit(performed);
  ASSERT_EQ(first_cause(audited), "batch_performed");
  EXPECT_EQ(audited.readings.front().changes.front().text,
            "each step performs 256 sequences, as its line says, not the 512 that are configured");
  EXPECT_EQ(audited.readings.front().changes.front().batch, 0.5);
  EXPECT_TRUE(audited.readings.front().unexplained.empty());
}

TEST(LinesAndSettingsSpec, WhatIsCountedDecidesWhetherLinesOrArgumentsAreWrong) {
  const RunRecord lines = Megatron{.of_line = 256}.record();
  EXPECT_EQ(first_cause(audit(lines)), "batch_of_lines");
  const RunRecord count = Megatron{.consumed = 256}.record();
  EXPECT_EQ(judge("step_sequences", count).verdict, Verdict::holds);
  const Audit audited = audit(count);
  EXPECT_EQ(first_cause(audited), "batch_performed");
  // Nothing else tells what the count counts.
  EXPECT_EQ(audited.readings.front().changes.front().alternative_ids,
            (std::vector<std::string>{"sequences_counted_other"}));
}

TEST(LinesAndSettingsSpec, ABatchThatNoArgumentStatesIsNotHeldAgainstItself) {
  std::string log = Megatron{.of_line = 256, .consumed = 256}.log();
  log = log.substr(log.find(" iteration"));
  EXPECT_EQ(judge("step_sequences", read_text(log)).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("planned_steps", read_text(log)).verdict, Verdict::cannot_be_judged);
}

TEST(LinesAndSettingsSpec, LinesOfARunOfOtherStepsThanConfiguredContradict) {
  EXPECT_EQ(judge("planned_steps", Megatron().record()).verdict, Verdict::holds);
  const Result told = judge("planned_steps", Megatron{.planned = 1000}.record());
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.printed, 1000);
  EXPECT_EQ(told.recomputed.low, 500);
  ASSERT_EQ(told.causes.size(), 1u);
  EXPECT_EQ(told.causes[0].id, "planned_steps_other");
  const Result beyond = judge("planned_steps", Megatron{.train_iters = 5, .planned = 5}.record());
  ASSERT_EQ(beyond.verdict, Verdict::contradicts);
  EXPECT_EQ(beyond.contradicted, 3);
  ASSERT_EQ(beyond.causes.size(), 1u);
  EXPECT_EQ(beyond.causes[0].id, "step_beyond");
}

/// torchtitan's line with `gib` of a device of 79.10 GiB.
std::string torchtitan(const std::string& gib, const std::string& percent, const std::string& device) {
  std::string out = "[titan] 2026-01-09 00:00:00,037 - root - INFO - CUDA capacity: " + device + "\n";
  for (int i = 1; i <= 8; ++i)
    out += "[titan] 2026-01-09 00:00:0" + std::to_string(i) +
           ",037 - root - INFO - step:  " + std::to_string(i) +
           "  loss:  9.5000  grad_norm:  2.1000  memory: " + gib + "GiB(" + percent +
           "%)  tps: 10,000  tflops: 100.00  mfu: 10.11%\n";
  return out;
}

TEST(LinesAndSettingsSpec, AShareOfTheMemoryAgreesWithItsGigabytes) {
  const std::string h100 = "NVIDIA H100 80GB HBM3 with 79.10GiB memory";
  EXPECT_EQ(judge("memory_share", read_text(torchtitan("39.55", "50.00", h100))).verdict, Verdict::holds);
  const Result told = judge("memory_share", read_text(torchtitan("20.00", "50.00", h100)));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.printed, 0.5);
  EXPECT_NEAR(told.recomputed.middle(), 20 / 79.10, 1e-4);
  ASSERT_EQ(told.causes.size(), 1u);
  EXPECT_EQ(told.causes[0].id, "memory_share_other");
  EXPECT_NE(told.causes[0].text.find("42.95 GB, not 84.9"), std::string::npos) << told.causes[0].text;
}

TEST(LinesAndSettingsSpec, ALogThatEndsInALossThatIsNoNumberContradictsInEveryFormat) {
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (const double loss :
         {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      const tests::SimulatedRun run = tests::simulate(static_cast<tests::LogFormat>(format), 7);
      tests::Report report = tests::report(run);
      std::size_t last = report.steps.size() - 1;
      while (!report.steps[last][Field::loss]) --last;
      report.steps[last][Field::loss] = loss;
      const tests::ReadArguments arguments = read_arguments(run);
      std::istringstream in(render(run, report));
      ReadOptions options;
      options.map = arguments.map, options.set = arguments.set;
      const RunRecord record = read_log(in, "a log", options);
      const Result told = judge("loss_finite", record);
      ASSERT_EQ(told.verdict, Verdict::contradicts) << to_string(run.format) << " " << loss;
      ASSERT_EQ(told.causes.size(), 1u);
      EXPECT_EQ(told.causes[0].id, "loss_not_finite");
      const auto& number = record.steps[last][Field::step];
      if (number) {
        EXPECT_NE(told.causes[0].text.find("at step " + shown(number->value, Unit::steps)), std::string::npos)
            << told.causes[0].text;
      }
    }
}

/// Megatron prints no loss of steps that it leaves out, but counts those whose loss was no number.
TEST(LinesAndSettingsSpec, ALogThatEndsInStepsLeftOutForTheirLossContradicts) {
  EXPECT_EQ(judge("loss_finite", Megatron().record()).verdict, Verdict::holds);
  const Result told = judge("loss_finite", Megatron{.left_out = 3}.record());
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 3);
  ASSERT_EQ(told.causes.size(), 1u);
  EXPECT_EQ(told.causes[0].text,
            "the log ends in steps whose loss was no number, from step 6 on: the run diverged");
  // Losses that go on say that no harm was done.
  const std::string end = Megatron{.first = 9}.log();
  EXPECT_EQ(
      judge("loss_finite", read_text(Megatron{.left_out = 3}.log() + end.substr(end.find(" iteration"))))
          .verdict,
      Verdict::holds);
}

TEST(LinesAndSettingsSpec, ASummaryWhoseLossIsNoNumberContradicts) {
  const auto log = [](const char* loss) {
    return "{'loss': 9.5, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
           "{'loss': 9.4, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 1.0}\n"
           "{'train_runtime': 10.0, 'train_steps_per_second': 0.2, 'train_loss': " +
           std::string(loss) + ", 'epoch': 1.0}\n";
  };
  EXPECT_EQ(judge("loss_finite", read_text(log("9.45"))).verdict, Verdict::holds);
  const Result told = judge("loss_finite", read_text(log("nan")));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{3}));
}

/// A cause says where the number stands that it takes for wrong.
TEST(LinesAndSettingsSpec, ACauseNamesTheOptionThatStatedWhatItIsHeldAgainst) {
  RunRecord record = Megatron().record();
  ASSERT_GT(record[Setting::max_steps]->line, 0);
  const std::string line = std::to_string(record[Setting::max_steps]->line);
  record.state(Setting::max_steps, exactly(800), "--set max_steps=800");
  const Result told = judge("planned_steps", record);
  ASSERT_EQ(told.causes.size(), 1u);
  EXPECT_NE(told.causes[0].text.find("held against --set max_steps=800, not the log, whose line " + line +
                                     " says 500"),
            std::string::npos)
      << told.causes[0].text;

  const tests::SimulatedRun run = tests::simulate(tests::LogFormat::torchtitan, 5000);
  RunRecord other = read_text(render(run));
  const std::string twice = std::to_string(2 * run.sequence_length);
  other.state(Setting::sequence_length, exactly(2 * static_cast<double>(run.sequence_length)),
              "--seq " + twice);
  const Audit audited = audit(other);
  ASSERT_EQ(first_cause(audited), "sequence_length_other");
  EXPECT_NE(
      audited.readings.front().changes.front().text.find("held against --seq " + twice + ", not the log"),
      std::string::npos)
      << audited.readings.front().changes.front().text;
}

}  // namespace
}  // namespace assay::spec::audit::lines_and_settings_test
