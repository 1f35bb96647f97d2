// labels: property
// What a log counts on its own (samples, tokens) speaks against readings in which a step has other tokens;
// what no mistake explains is told as the multiple that it is.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::printed_evidence_test {
namespace {

using tests::LogFormat;
using tests::SimulatedRun;

/// The log of a run whose printed numbers of some fields are `factor` times the true ones.
RunRecord scaled(const SimulatedRun& run, const std::vector<Field>& fields, double factor) {
  tests::Report report = tests::report(run);
  for (tests::ReportedStep& step : report.steps)
    for (const Field field : fields)
      if (step[field]) *step[field] *= factor;
  std::istringstream in(tests::render(run, report));
  const tests::ReadArguments arguments = read_arguments(run);
  ReadOptions options;
  options.map = arguments.map;
  options.set = arguments.set;
  return read_log(in, std::string(to_string(run.format)), options);
}

const std::vector<Field> rates = {Field::tokens_per_second, Field::mfu, Field::flops_rate};

bool names(const Audit& audit, const std::string& id) {
  return !audit.readings.front().changes.empty() && audit.readings.front().changes.front().id == id;
}

std::string told(const Audit& audit) {
  std::string out;
  for (const Reading& reading : audit.readings) {
    for (const Change& change : reading.changes) out += change.id + ": " + change.text + "; ";
    out += "\n";
  }
  return out;
}

TEST(PrintedEvidenceSpec, AReadingOfOtherBatchesIsNotNamedAgainstPrintedCounts) {
  int halved = 0;
  for (const LogFormat format : {LogFormat::assay, LogFormat::megatron, LogFormat::kempnerforge})
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const SimulatedRun run = tests::simulate(format, seed);
      if (run.accumulation % 2 != 0) continue;
      const RunRecord record = scaled(run, rates, 0.5);
      const Audit one = audit(record);
      ASSERT_TRUE(one.contradicts);
      for (const Reading& reading : one.readings)
        for (const Change& change : reading.changes)
          EXPECT_EQ(change.batch, 1) << to_string(format) << ", seed " << seed << ": " << change.text;
      ++halved;
    }
  EXPECT_GT(halved, 20);
}

TEST(PrintedEvidenceSpec, CountsOfFewerPassesAreOneReadingWithTheRate) {
  int drawn = 0;
  for (const LogFormat format : {LogFormat::assay, LogFormat::megatron, LogFormat::kempnerforge})
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SimulatedRun run = tests::simulate(format, seed);
      if (run.accumulation < 6 || run.accumulation % 3 != 0 || 3 == run.data_parallel) continue;
      run.accounting.accumulation = run.accumulation / 3;
      const RunRecord record = scaled(run, {}, 1);
      const Audit one = audit(record);
      EXPECT_TRUE(names(one, "accumulation_performed")) << to_string(format) << ", " << seed << "\n"
                                                        << told(one);
      ++drawn;
    }
  EXPECT_GT(drawn, 10);
}

TEST(PrintedEvidenceSpec, TokensCountedOnEveryGpuThatSharesThemAreNamed) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SimulatedRun run = tests::simulate(LogFormat::kempnerforge, seed);
    if (run.tensor_parallel == 1 || run.model.name == "qwen3-0.6b") continue;
    const double shared = static_cast<double>(run.tensor_parallel);
    if (run.data_parallel == 1) continue;
    const RunRecord record = scaled(run, rates, shared);
    const Audit one = audit(record);
    EXPECT_TRUE(names(one, "rate_times_model_ranks") || names(one, "rate_times_ranks")) << seed << "\n"
                                                                                        << told(one);
    bool among = false;
    for (const Reading& reading : one.readings)
      for (const Change& change : reading.changes) {
        among |= change.id == "rate_times_model_ranks";
        for (const std::string& text : change.alternatives) among |= text.find("shares them") != text.npos;
      }
    EXPECT_TRUE(among) << seed << "\n" << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 15);
}

/// 4 x or 1/4 of what nothing in the log is: no mistake is known, and that it is 4 x is said, with all that
/// it may be.
TEST(PrintedEvidenceSpec, AMultipleThatNothingExplainsIsToldWithAllThatItMayBe) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SimulatedRun run = tests::simulate(LogFormat::kempnerforge, seed);
    const auto is = [&](std::int64_t n) {
      return run.gpus == n || run.data_parallel == n || run.tensor_parallel == n;
    };
    if (is(7) || run.model.name == "qwen3-0.6b" || run.accumulation == 7) continue;
    const RunRecord record = scaled(run, rates, 7);
    const Audit one = audit(record);
    ASSERT_TRUE(names(one, "rate_multiple")) << seed << "\n" << told(one);
    EXPECT_NE(one.readings.front().changes.front().text.find("7 times"), std::string::npos);
    // The time may be it as well, and nothing tells, unless the rate as printed passes the GPUs' peak.
    bool time = false;
    for (const Reading& reading : one.readings)
      time |= equally(one.readings.front(), reading) && reading.changes.front().id == "time_multiple";
    const auto& mfu = one.readings.front().corrected.mfu_exact;
    EXPECT_EQ(time, !mfu || 7 * mfu->low <= 1.005) << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
}

/// torchtitan prints no step time: the clock before its lines says that its rates are half of what they
/// should be.
TEST(PrintedEvidenceSpec, HalfTheRateOfTorchtitanShowsAgainstItsClock) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SimulatedRun run = tests::simulate(LogFormat::torchtitan, seed);
    const RunRecord record = scaled(run, rates, 0.5);
    if (record.steps.size() < 5) continue;
    const Audit one = audit(record);
    EXPECT_TRUE(one.contradicts) << seed;
    EXPECT_EQ(one.readings.front().unexplained.size(), 0u) << seed << "\n" << told(one);
    EXPECT_EQ(one.readings.front().changes.size(), 1u) << seed << "\n" << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
}

/// Only tokens/s: FLOP/s, MFU and the clock agree with one another against it.
TEST(PrintedEvidenceSpec, ARateThatIsOffAloneIsNamedInTorchtitan) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SimulatedRun run = tests::simulate(LogFormat::torchtitan, seed);
    const double factor = seed % 2 ? 0.5 : 5;
    if (static_cast<double>(run.gpus) == 5 || run.gpus == 2) continue;
    const RunRecord record = scaled(run, {Field::tokens_per_second}, factor);
    if (record.steps.size() < 5) continue;
    const Audit one = audit(record);
    EXPECT_TRUE(one.contradicts) << seed;
    const Reading& best = one.readings.front();
    EXPECT_TRUE(best.changes.size() == 1 && best.changes[0].rate != 1) << seed << "\n" << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
}

TEST(PrintedEvidenceSpec, OneRanksRateOfTorchtitanIsNamed) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SimulatedRun run = tests::simulate(LogFormat::torchtitan, seed);
    if (run.data_parallel == 1 || run.data_parallel == run.gpus) continue;
    run.accounting.rate = run.accounting.numerator = tests::Whose::rank;
    const RunRecord record = scaled(run, {}, 1);
    if (record.steps.size() < 5) continue;
    const Audit one = audit(record);
    EXPECT_TRUE(names(one, "rate_of_one_rank"))
        << seed << ", " << run.gpus << " GPUs, " << run.data_parallel << " ranks\n"
        << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
}

TEST(PrintedEvidenceSpec, OneRanksFlopsOfMegatronAreNamed) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SimulatedRun run = tests::simulate(LogFormat::megatron, seed);
    if (run.data_parallel == 1 || run.data_parallel == run.gpus) continue;
    run.accounting.numerator = tests::Whose::rank;
    const RunRecord record = scaled(run, {}, 1);
    const Audit one = audit(record);
    EXPECT_TRUE(names(one, "flops_of_one_rank")) << seed << "\n" << told(one);
    ++drawn;
  }
  EXPECT_GT(drawn, 10);
}

}  // namespace
}  // namespace assay::spec::audit::printed_evidence_test
