// labels: unit
#include "spec/audit/hypotheses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "spec/audit/compare_runs.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"

namespace assay::spec::audit::hypotheses_test {
namespace {

std::vector<std::string> ids(const Reading& reading) {
  std::vector<std::string> out;
  for (const Change& change : reading.changes) out.push_back(change.id);
  std::sort(out.begin(), out.end());
  return out;
}

const Change& change_of(const Reading& reading, const std::string& id) {
  for (const Change& change : reading.changes)
    if (change.id == id) return change;
  throw std::runtime_error("no " + id);
}

// The report's two runs: what slowed down is the accounting. 106,979 x 1.838 s = 196,627 tokens, that is 24 x
// 2,048 x 4 of one rank; 106,809 x 29.452 s = 3,145,739, that is 24 x 2,048 x 64.
TEST(HypothesesSpec, TheScalingReportIsExplained) {
  const std::vector<RunRecord> runs = {tests::scaling_report_run(2), tests::scaling_report_run(8)};
  const Together together = audit(runs);
  const Reading &two = together.audits[0].readings.front(), &eight = together.audits[1].readings.front();
  EXPECT_EQ(ids(two),
            (std::vector<std::string>{"accumulation_performed", "peak_sparse", "rate_of_one_rank"}));
  EXPECT_EQ(change_of(two, "accumulation_performed").text, "accumulation 4 was performed, not 64");
  EXPECT_EQ(ids(eight), (std::vector<std::string>{"peak_sparse", "rate_of_one_rank"}));
  for (const Reading* reading : {&two, &eight}) {
    EXPECT_NEAR(reading->corrected.mfu_palm_total->middle(), 0.417, 0.001);
    EXPECT_NEAR(reading->corrected.mfu_exact->middle(), 0.372, 0.001);
    EXPECT_NEAR(reading->corrected.per_gpu->middle(), 106900, 100);
  }
  EXPECT_NEAR(two.corrected.mfu_exact->middle() / eight.corrected.mfu_exact->middle(), 1, 0.01);
  ASSERT_EQ(together.differences.size(), 1u);
  EXPECT_EQ(together.differences[0].verdict.rfind("accounting", 0), 0u) << together.differences[0].verdict;
}

TEST(HypothesesSpec, AloneTheSmallRunHasTwoReadings) {
  const RunRecord run = tests::scaling_report_run(2);
  const Audit alone = audit(run);
  EXPECT_EQ(ids(alone.readings.at(0)),
            (std::vector<std::string>{"accumulation_performed", "peak_sparse", "rate_of_one_rank"}));
  EXPECT_EQ(ids(alone.readings.at(1)), (std::vector<std::string>{"accumulation_performed", "peak_sparse"}));
  EXPECT_TRUE(equally(alone.readings[0], alone.readings[1]));
  EXPECT_EQ(change_of(alone.readings[1], "accumulation_performed").text,
            "accumulation 2 was performed, not 64");
}

TEST(HypothesesSpec, TheSparsePeakOfBf16IsTheDenseOneOfFp8) {
  const RunRecord run = tests::scaling_report_run(8);
  const Audit one = audit(run);
  const Change peak = change_of(one.readings.front(), "peak_sparse");
  ASSERT_EQ(peak.alternatives.size(), 1u);
  EXPECT_EQ(peak.alternatives[0], "the peak is the dense one of fp8, not of bf16");
}

TEST(HypothesesSpec, OneWrongLineIsToldFromAHabit) {
  RunRecord r = tests::scaling_report_run(8);
  const Step step = r.steps[1];
  for (int i = 2; i <= 20; ++i) {
    r.steps.push_back(step);
    r.steps.back()[Field::step] = exactly(10.0 * i, 100 + i);
  }
  r.steps[7][Field::mfu] = Printed{0.0361, 0.03605, 0.03615, 107};
  const Audit one = audit(r);
  for (const Result& result : one.results)
    if (result.id == "mfu") {
      ASSERT_EQ(result.verdict, Verdict::contradicts);
      EXPECT_EQ(result.causes.at(0).id, "line_mfu");
    }
}

TEST(HypothesesSpec, HostileNumbersAreJudgedWithoutAThrow) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double values[] = {0,    -1,  1,   2,   3,   7,    64,  1e-300, 1e300, -1e300,
                               1e18, 1e9, 0.1, 100, nan, -100, inf, 4096,   1.5,   1e12};
  std::mt19937 draw(1);
  const auto number = [&] {
    const double value = values[draw() % std::size(values)], half = draw() % 3 ? 0 : std::abs(value) * 0.01;
    return Printed{value, value - half, value + half, static_cast<std::int64_t>(draw() % 50)};
  };
  for (int n = 0; n < 300; ++n) {
    RunRecord r;
    for (auto& setting : r.settings)
      if (draw() % 3 == 0) setting = number();
    r.format.name = draw() % 2 ? "llm_tii" : "nanogpt";
    r.format.convention = draw() % 2 ? "megatron" : "";
    r.gpu = draw() % 2 ? "NVIDIA B200" : "A100";
    if (draw() % 4 == 0) r.model = "llama3-8b";
    for (auto step = draw() % 12; step > 0; --step) {
      r.steps.emplace_back();
      for (auto& field : r.steps.back().fields)
        if (draw() % 3 == 0) field = number();
    }
    const std::vector<RunRecord> twice = {r, r};
    for (const Audit& one : audit(twice).audits)
      for (const Result& result : one.results) EXPECT_FALSE(shown(result.printed, result.unit).empty());
  }
}

TEST(HypothesesSpec, AnEmptyRecordIsNoContradiction) {
  const RunRecord empty;
  const Audit one = audit(empty);
  EXPECT_FALSE(one.contradicts);
  EXPECT_TRUE(one.readings.at(0).changes.empty());
}

}  // namespace
}  // namespace assay::spec::audit::hypotheses_test
