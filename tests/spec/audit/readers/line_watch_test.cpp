// labels: unit
// One faulty line of a log that is too long to be kept whole.
#include "spec/audit/readers/line_watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::line_watch_test {
namespace {

using tests::LogFormat;

constexpr std::int64_t many = 12'000;

tests::SimulatedRun long_run(LogFormat format) {
  tests::SimulatedRun run = tests::simulate(format, 3, many);
  run.log_every = 1;
  return run;
}

RunRecord read(const tests::SimulatedRun& run, const tests::Report& report) {
  const tests::ReadArguments told = tests::read_arguments(run);
  ReadOptions options;
  options.map = told.map;
  options.set = told.set;
  options.keep_odd_steps = options.keep_steps_apart = true;
  std::istringstream in(render(run, report));
  return read_log(in, "long", options);
}

struct Watched {
  LogFormat format;
  std::vector<Field> fields;
};
const std::vector<Watched>& all_watched() {
  static const std::vector<Watched> all = {
      {LogFormat::assay, {Field::tokens_per_second, Field::mfu, Field::seconds}},
      {LogFormat::kempnerforge, {Field::tokens_per_second, Field::mfu, Field::seconds, Field::learning_rate}},
      {LogFormat::torchtitan, {Field::tokens_per_second, Field::mfu, Field::flops_rate}},
      {LogFormat::megatron, {Field::seconds, Field::learning_rate}},
      {LogFormat::nanogpt, {Field::mfu}},
      {LogFormat::llmc, {Field::mfu, Field::tokens_per_second, Field::learning_rate}},
      {LogFormat::llmq, {Field::tokens_per_second, Field::mfu}},
      {LogFormat::csv, {Field::tokens_per_second, Field::mfu, Field::seconds}},
      {LogFormat::json_lines, {Field::tokens_per_second, Field::mfu, Field::seconds}}};
  return all;
}

TEST(LineWatchSpec, ATruthfulLogsLinesStandTogether) {
  for (const Watched& watched : all_watched()) {
    const tests::SimulatedRun run = long_run(watched.format);
    const RunRecord record = read(run, report(run));
    ASSERT_GT(record.steps_seen, static_cast<std::int64_t>(record.steps.size()));
    EXPECT_LT(record.steps_apart, 100) << to_string(watched.format);
    EXPECT_EQ(record.steps_left_out, 0) << to_string(watched.format);
    EXPECT_TRUE(consistent(record)) << to_string(watched.format) << "\n" << contradictions(record);
  }
}

TEST(LineWatchSpec, OneWrongNumberOfAnyLineIsFound) {
  for (const Watched& watched : all_watched())
    for (const Field field : watched.fields) {
      const tests::SimulatedRun run = long_run(watched.format);
      for (const std::size_t at : {std::size_t{2'049}, std::size_t{5'003}, std::size_t{9'001}}) {
        tests::Report faulty = report(run);
        ASSERT_TRUE(faulty.steps.at(at)[field]) << to_string(field);
        *faulty.steps.at(at)[field] *= 1.3;
        const RunRecord record = read(run, faulty);
        EXPECT_GE(record.steps_apart, 1);
        bool found = false;
        for (const Result& result : judge(record)) found |= result.verdict == Verdict::contradicts;
        EXPECT_TRUE(found) << to_string(watched.format) << ", " << to_string(field) << ", " << at;
      }
    }
}

TEST(LineWatchSpec, ALossThatNoTrainingReachesIsKept) {
  const tests::SimulatedRun run = long_run(LogFormat::kempnerforge);
  tests::Report faulty = report(run);
  *faulty.steps.at(5'003)[Field::loss] = 5'000;
  EXPECT_EQ(judge("loss_possible", read(run, faulty)).verdict, Verdict::contradicts);
}

/// More faults than are kept: as many are judged, and the others are counted.
TEST(LineWatchSpec, WhatIsTooMuchToKeepIsCounted) {
  const tests::SimulatedRun run = long_run(LogFormat::kempnerforge);
  tests::Report faulty = report(run);
  for (std::size_t i = 3'000; i < 9'000; ++i) *faulty.steps.at(i)[Field::tokens_per_second] *= 1.3;
  const RunRecord record = read(run, faulty);
  EXPECT_EQ(record.steps_apart, 6'000);
  EXPECT_GT(record.steps_left_out, 0);
  EXPECT_FALSE(consistent(record));
}

}  // namespace
}  // namespace assay::spec::audit::line_watch_test
