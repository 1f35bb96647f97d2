// labels: unit property
// Numbers that a log prints of one thing twice: what explains one of them has to explain the other.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::second_numbers_test {
namespace {

using tests::LogFormat;
using tests::Report;
using tests::SimulatedRun;

/// The changes of the first reading, "time_unit;", or the first cause of what contradicts.
std::string told(const SimulatedRun& run, const Report& report) {
  std::istringstream in(render(run, report));
  const RunRecord record = read_log(in, "log");
  const Audit found = audit(record);
  std::string out;
  for (const Change& change : found.readings.front().changes) out += change.id + ";";
  for (const Result& result : found.results)
    if (out.empty() && result.verdict == Verdict::contradicts && !result.causes.empty())
      out = result.causes.front().id;
  return out;
}
std::string told(const SimulatedRun& run) { return told(run, report(run)); }

/// Runs of Megatron's descendants that print samples/s, of several passes.
template <class Test>
void with_sequences_rate(Test test) {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SimulatedRun run = tests::simulate(LogFormat::megatron, seed);
    if (run.accumulation < 4 || run.data_parallel == 2 || run.data_parallel == 4 || run.steps.size() < 40 ||
        run.log_every > 2)
      continue;
    run.prints_sequences_rate = true;
    ASSERT_EQ(told(run), "") << seed;
    test(run, seed);
    ++runs;
  }
  EXPECT_GT(runs, 3);
}

TEST(SecondNumbersSpec, FewerPassesMoveSequencesPerSecondToo) {
  with_sequences_rate([](SimulatedRun run, std::uint64_t seed) {
    run.accounting.accumulation = run.accumulation - 1;
    EXPECT_EQ(told(run), "accumulation_performed;") << seed;
  });
}

TEST(SecondNumbersSpec, AnotherUnitOfTimeMovesSequencesPerSecondToo) {
  with_sequences_rate([](SimulatedRun run, std::uint64_t seed) {
    run.accounting.time_factor = 1e-3;
    EXPECT_EQ(told(run), "time_unit;") << seed;
  });
}

TEST(SecondNumbersSpec, AnotherBatchOnTheLinesIsWhatSequencesPerSecondAreHeldAgainst) {
  with_sequences_rate([](const SimulatedRun& run, std::uint64_t seed) {
    Report lines = report(run);
    for (tests::ReportedStep& step : lines.steps) *step[Field::step_sequences] *= 2;
    EXPECT_EQ(told(run, lines), "batch_of_lines;") << seed;
  });
}

TEST(SecondNumbersSpec, OneLinesSequencesPerSecondAreNamed) {
  with_sequences_rate([](const SimulatedRun& run, std::uint64_t seed) {
    Report one = report(run);
    *one.steps[7][Field::sequences_per_second] *= 1.3;
    EXPECT_EQ(told(run, one), "line_sequences_per_second") << seed;
  });
}

TEST(SecondNumbersSpec, FlopsOfALayersMlpAreOfOneLengthAndThreeMatrices) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const SimulatedRun run = tests::simulate(LogFormat::llm_tii_json, seed);
    ASSERT_EQ(told(run), "") << seed;
    Report other = report(run);
    *other[Setting::ffn_flops_per_layer] *= 2.0 / 3;
    EXPECT_EQ(told(run, other), "ffn_gate_not_counted;") << seed;
    if (run.steps.size() < 40 || run.log_every > 2) continue;
    other = report(run);
    *other[Setting::sequence_length] *= 2;
    EXPECT_EQ(told(run, other), "sequence_length_other;") << seed;
  }
}

}  // namespace
}  // namespace assay::spec::audit::second_numbers_test
