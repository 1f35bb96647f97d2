// labels: unit
// What the audit names where a number of nanotron's lines is wrong.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/readers/nanotron_printer.hpp"

namespace assay::spec::audit::nanotron_named_test {
namespace {

using nanotron_test::Printer;

/// The first reading of the log, where `gpus` ran by an option; "" where none contradicts.
std::string read_as(const std::string& log, double gpus) {
  std::istringstream in(log);
  RunRecord record = read_log(in, "log");
  record.state(Setting::gpus, exactly(gpus), "--gpus");
  const Audit found = audit(record);
  std::string out;
  for (const Change& change : found.readings.front().changes) out += change.id + ";";
  return out;
}

/// Rate and time of the first line make the length where nothing states it, unless they make none.
TEST(NanotronSpec, SecondsUnderMillisecondsAreToldWhateverTheBatchCounts) {
  for (const bool in_tokens : {false, true})
    for (const double length : {1024.0, 2048.0, 8192.0}) {
      Printer run{length, 512, 16, 1, 12, in_tokens};
      EXPECT_EQ(read_as(run.log(), 16), "");
      run.time_factor = 1e-3;
      EXPECT_EQ(read_as(run.log(), 16), "time_unit;") << run.log();
      EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::holds) << run.log();
    }
}

/// One of both rates is printed under both names.
TEST(NanotronSpec, OneGpusRateAndThatOfAllAreTakenForEachOther) {
  for (const bool in_tokens : {false, true})
    for (const double gpus : {2.0, 16.0}) {
      Printer run{2048, 512, gpus, 1, 12, in_tokens};
      run.same_rates = 1 / gpus;
      EXPECT_EQ(read_as(run.log(), gpus), "rate_of_one_gpu;") << run.log();
      EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
      run.same_rates = 1;
      EXPECT_EQ(read_as(run.log(), gpus), "gpu_rate_of_all;") << run.log();
    }
}

TEST(NanotronSpec, OtherGpusThanStatedAreToldByOnesRate) {
  const Printer run{2048, 512, 16};
  for (const double stated : {8.0, 64.0}) EXPECT_EQ(read_as(run.log(), stated), "gpus_other;");
}

/// The batch of its lines is the configured one: only rate and count say what was performed.
TEST(NanotronSpec, FewerPassesThanConfiguredAreNamedWhateverTheBatchCounts) {
  for (const bool in_tokens : {false, true}) {
    Printer run;
    run.batch_in_tokens = in_tokens, run.configuration = true;
    run.rate_factor = run.total_factor = 0.75;
    EXPECT_EQ(read_as(run.log(), 64), "accumulation_performed;") << in_tokens;
  }
}

/// One GPU's rate is that of all over the GPUs, and wrong with it.
TEST(NanotronSpec, OneRanksRateIsNamedWhereOneGpusIsMadeOfIt) {
  for (const bool in_tokens : {false, true}) {
    Printer run;
    run.batch_in_tokens = in_tokens, run.configuration = true;
    run.pipeline = run.tensor = 2, run.accumulation = 16;
    run.rate_factor = 1.0 / 16;
    EXPECT_EQ(read_as(run.log(), 64), "rate_of_one_rank;") << in_tokens;
  }
}

TEST(NanotronSpec, AnotherLengthIsNamedByTokensOfThreeDigits) {
  Printer run;
  run.batch_in_tokens = run.configuration = true;
  run.stated_length = 4096;
  EXPECT_EQ(read_as(run.log(), 64), "sequence_length_other;");
}

TEST(NanotronSpec, TokensThatCountAPartOfEachStepAreNamed) {
  Printer run;
  run.total_factor = 0.125;
  const Audit told = audit(run.read());
  ASSERT_TRUE(told.contradicts);
  ASSERT_EQ(told.readings.front().changes.size(), 1u);
  EXPECT_EQ(told.readings.front().changes.front().id, "total_multiple");
  EXPECT_EQ(told.readings.front().changes.front().text,
            "the tokens since the start are 1/8 of what the steps have, as if one rank or pass of 8 counted");
  run.total_factor = 0.43;  // no multiple
  EXPECT_EQ(audit(run.read()).readings.front().unexplained.size(), 1u);
}

/// The lines' batch, to three digits, beside a configuration, rates and a count that all make half of it: one
/// mistake, not two that undo each other.
TEST(NanotronNamedSpec, ABatchOfTheLinesThatAllElseDeniesIsOneMistake) {
  for (const double factor : {2.0, 0.5, 4.0}) {
    Printer run;
    run.batch_in_tokens = run.configuration = true;
    ASSERT_FALSE(audit(run.read()).contradicts);
    run.batch_factor = factor;
    const RunRecord record = run.read();
    const Audit told = audit(record);
    ASSERT_TRUE(told.contradicts) << factor;
    ASSERT_EQ(told.readings.front().changes.size(), 1u) << factor;
    EXPECT_EQ(told.readings.front().changes.front().id, "batch_stated_other") << factor;
    EXPECT_NEAR(told.readings.front().changes.front().batch, 1 / factor, 1e-9) << factor;
  }
}

}  // namespace
}  // namespace assay::spec::audit::nanotron_named_test
