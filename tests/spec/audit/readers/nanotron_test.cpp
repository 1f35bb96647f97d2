// labels: unit
// nanotron's lines: what their batch counts, how they are rounded, and that each number is held against the
// others. What is named where one is wrong: nanotron_named_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/readers/nanotron_printer.hpp"

namespace assay::spec::audit::nanotron_test {
namespace {

TEST(NanotronSpec, HonestLogsHold) {
  for (const double length : {128.0, 1024.0, 2048.0, 4096.0, 8192.0})
    for (const double sequences : {16.0, 96.0, 512.0, 1000.0, 1024.0})
      for (const double first : {1.0, 37.0, 985.0})
        for (const bool in_tokens : {false, true}) {
          const Printer run{length, sequences, 8, first, 12, in_tokens};
          const RunRecord record = run.read();
          EXPECT_EQ(record.format.name, "nanotron");
          EXPECT_EQ(record.unread_lines, 0);
          EXPECT_EQ(contradictions(record), "") << run.log();
          EXPECT_EQ(judge("rate_time", record).verdict, Verdict::holds) << run.log();
          EXPECT_EQ(judge("rate_time", record).judged, 12);
        }
}

TEST(NanotronSpec, TheBatchIsOfSequencesOrOfTokens) {
  Printer run;
  EXPECT_EQ(run.read()[Setting::sequences]->value, 512);
  EXPECT_TRUE(run.read()[Setting::sequence_length]->holds(2048));
  EXPECT_FALSE(run.read()[Setting::tokens_per_step]);
  run.batch_in_tokens = true;
  const RunRecord record = run.read();
  EXPECT_FALSE(record[Setting::sequences]);
  // 1,048,576 is printed as 1.05M, and 1,600,000 as 1.6M: three digits, whatever is shown of them.
  EXPECT_DOUBLE_EQ(record[Setting::tokens_per_step]->low, 1.045e6);
  run.length = 1600, run.sequences = 1000;
  EXPECT_DOUBLE_EQ(run.read()[Setting::tokens_per_step]->low, 1.595e6);
  EXPECT_DOUBLE_EQ(run.read()[Setting::tokens_per_step]->high, 1.605e6);
}

/// A line like one before it is read at one go: as it would be on its own, also where the batch grows or a
/// rate falls to another unit.
TEST(NanotronSpec, LinesAlikeAreReadAsEachOnItsOwn) {
  const auto read = [](const std::string& log) {
    std::istringstream in(log);
    return read_log(in, "log");
  };
  for (const bool in_tokens : {false, true}) {
    Printer small{1024, 96, 8, 1, 12, in_tokens}, large{1024, 192, 8, 13, 12, in_tokens},
        slow{128, 96, 8, 25, 12, in_tokens};
    const std::string log = small.log() + large.log() + slow.log();
    std::string unlike;
    int line = 0;
    std::istringstream in(log);
    for (std::string text; std::getline(in, text); ++line)
      unlike += std::string(line, '#') + " " + text + "\n";
    const RunRecord a = read(log), b = read(unlike);
    ASSERT_EQ(a.steps.size(), 36u);
    ASSERT_EQ(b.steps.size(), a.steps.size());
    for (std::size_t i = 0; i < setting_count; ++i)
      EXPECT_EQ(a.settings[i].has_value(), b.settings[i].has_value()) << to_string(static_cast<Setting>(i));
    for (std::size_t i = 0; i < a.steps.size(); ++i)
      for (std::size_t j = 0; j < field_count; ++j) {
        const auto &one = a.steps[i].fields[j], &other = b.steps[i].fields[j];
        ASSERT_EQ(one.has_value(), other.has_value()) << i << to_string(static_cast<Field>(j));
        if (!one) continue;
        EXPECT_EQ(one->low, other->low) << i << to_string(static_cast<Field>(j));
        EXPECT_EQ(one->high, other->high) << i << to_string(static_cast<Field>(j));
        EXPECT_EQ(one->line, other->line) << i << to_string(static_cast<Field>(j));
      }
  }
}

TEST(NanotronSpec, EachNumberIsHeldAgainstTheOthers) {
  for (const bool in_tokens : {false, true}) {
    Printer run;
    run.batch_in_tokens = in_tokens;
    run.total_factor = 0.25;
    EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::contradicts) << in_tokens;
  }
  Printer run;
  run.batch_in_tokens = true;
  run.rate_factor = 1.0 / 64;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  run.rate_factor = 1, run.batch_factor = 4;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  run.batch_factor = 1, run.time_factor = 1e-3;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  // Three percent are more than three digits leave open.
  run.time_factor = 1, run.batch_factor = 1.03;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
}

/// tokens/s of one GPU and of all; what the hardware did and what the model needs.
TEST(NanotronSpec, RatesOfOneGpuAndOfTheHardwareAreHeldAgainstTheOthers) {
  Printer run;
  run.configuration = true;
  EXPECT_EQ(judge("gpu_rate", run.read()).judged, 12);
  EXPECT_EQ(judge("gpu_rate", run.read()).verdict, Verdict::holds);
  run.gpu_rate_factor = 2;
  EXPECT_EQ(judge("gpu_rate", run.read()).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("hfu", run.read()).verdict, Verdict::holds);
  run.hardware = 1.02;  // recomputed activations
  EXPECT_EQ(judge("hfu", run.read()).verdict, Verdict::holds);
  run.hardware = 0.98;
  const Result result = judge("hfu", run.read());
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.contradicted, 12);
  EXPECT_NEAR(result.printed, 0.98, 0.006);
}

TEST(NanotronSpec, TokensOfAWrongTotalAreNotTakenForSequences) {
  for (const double factor : {1.0 / 16, 16.0, 2048.0}) {
    Printer run;
    run.batch_in_tokens = true, run.total_factor = factor;
    EXPECT_TRUE(run.read()[Setting::tokens_per_step]) << factor;
    EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::holds) << factor;
    EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::contradicts) << factor;
  }
  // And the total says that they are tokens where the rate is wrong.
  Printer fast;
  fast.batch_in_tokens = true, fast.rate_factor = 64;
  EXPECT_TRUE(fast.read()[Setting::tokens_per_step]);
  EXPECT_EQ(judge("tokens_total", fast.read()).verdict, Verdict::holds);
  EXPECT_EQ(judge("rate_time", fast.read()).verdict, Verdict::contradicts);
  // A small total may be what is wrong as well as one GPU's rate; a GPU that ran alone is held by its rate.
  Printer alone{2048, 512, 1};
  alone.total_factor = 0.125;
  EXPECT_EQ(judge("rate_time", alone.read()).verdict, Verdict::holds);
  EXPECT_EQ(judge("tokens_total", alone.read()).verdict, Verdict::contradicts);
}

TEST(NanotronSpec, TheConfigurationIsHeldAgainstTheLines) {
  Printer run;
  run.configuration = true;
  RunRecord record = run.read();
  EXPECT_EQ(record[Setting::micro]->value, 2);
  EXPECT_EQ(record[Setting::accumulation]->value, 4);
  EXPECT_EQ(record[Setting::sequence_length]->value, 2048);
  EXPECT_EQ(contradictions(record), "");
  for (const std::string id : {"ranks", "sequences", "rate_time"})
    EXPECT_EQ(judge(id, record).verdict, Verdict::holds) << id;
  run.pipeline = 2, run.tensor = 4, run.accumulation = 32;
  EXPECT_EQ(contradictions(run.read()), "");
  run.accumulation = 16;
  EXPECT_EQ(judge("sequences", run.read()).verdict, Verdict::contradicts);
  run.accumulation = 32, run.rate_factor = 1.0 / 8;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
}

TEST(NanotronSpec, ABatchThatGrowsIsOfNoOneSize) {
  Printer run;
  std::string log = run.log();
  run.sequences = 1024, run.first = 13;
  run.total_factor = (12.0 * 512 + 1024) / (13 * 1024);  // about: the totals are not looked at
  std::istringstream in(log + run.log());
  const RunRecord record = read_log(in, "log");
  EXPECT_FALSE(record[Setting::sequences]);
  EXPECT_EQ(contradictions(record), "");
  // Each line has its own.
  const auto &first = record.steps.front()[Field::step_sequences],
             &last = record.steps.back()[Field::step_sequences];
  ASSERT_TRUE(first && last);
  EXPECT_TRUE(first->holds(512) && last->holds(1024));
}

/// Three digits of 1.2T tokens: a few steps of 1M do not show, so nothing is held.
TEST(NanotronSpec, ACountThatIsPrintedNoFinerThanItGrowsIsNotHeld) {
  Printer run;
  run.first = 1200000;
  EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("tokens_total", run.read()).note, "digits of what is counted since the start");
  // Where they would show, they do.
  run.first = 1, run.steps = 40;
  const Result told = judge("tokens_total", run.read());
  EXPECT_EQ(told.verdict, Verdict::holds);
  EXPECT_GT(told.printed, 0);
  run.total_factor = 0;
  EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("tokens_total", run.read()).note, "a count since the start that is not 0");
}

}  // namespace
}  // namespace assay::spec::audit::nanotron_test
