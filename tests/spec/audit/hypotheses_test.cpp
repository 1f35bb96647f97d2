// labels: unit property
#include "spec/audit/hypotheses.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>

#include "spec/audit/compare_runs.hpp"
#include "spec/audit/readers/read_log.hpp"
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

/// Whether a reading says that GPUs do more than their peak.
bool corrects_beyond_peak(const Audit& audit) {
  for (const Reading& reading : audit.readings)
    for (const auto& mfu : {reading.corrected.mfu_exact, reading.corrected.mfu_palm_total})
      if (mfu && !(mfu->low <= mfu->high && mfu->high <= 1)) return true;
  return false;
}

/// Llama 3 8B on 16 H100 at 8,192 tokens: thirty steps of 128 sequences, each number as its argument says.
RunRecord llama_on_16(double seconds, double tokens_per_second, double mfu, const std::string& dtype) {
  RunRecord r;
  r.model = "llama3-8b";
  r.gpu = "NVIDIA H100 80GB HBM3";
  r.dtype = dtype;
  r[Setting::gpus] = exactly(16), r[Setting::micro] = exactly(2), r[Setting::accumulation] = exactly(4);
  r[Setting::sequences] = exactly(128), r[Setting::sequence_length] = exactly(8192);
  for (int i = 1; i <= 30; ++i) {
    Step step;
    step.line = i;
    step[Field::step] = exactly(i, i);
    step[Field::seconds] = Printed{seconds, seconds - 5e-5, seconds + 5e-5, i};
    step[Field::tokens_per_second] =
        Printed{tokens_per_second, tokens_per_second - 0.5, tokens_per_second + 0.5, i};
    step[Field::mfu] = Printed{mfu, mfu - 5e-5, mfu + 5e-5, i};
    r.steps.push_back(step);
  }
  r.steps_seen = 30;
  return r;
}

/// torchtitan's lines of Llama 3 8B on 8 H100, with MFUs `factor` times what they are.
std::string titan_with_mfu_times(double factor) {
  std::string log =
      "[titan] - Starting job: Llama 3 8B training\n"
      "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory\n"
      "[titan] - Peak FLOPS used for computing MFU: 9.890e+14\n"
      "[titan] - Model llama3 8B size: 8,030,261,248 total parameters\n"
      "[titan] - Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation "
      "steps 1, sequence length 8192, total steps 1000 (warmup 200)\n";
  for (int step = 1; step <= 12; ++step) {
    char line[200];
    std::snprintf(line, sizeof line,
                  "[titan] - step: %2d  loss: 12.1500  grad_norm:  2.1000  memory: 60.12GiB(75.99%%)  tps: "
                  "5,976  tflops: 346.09  mfu: %.2f%%\n",
                  step, 34.99 * factor);
    log += line;
  }
  return log;
}

// 1.5 is 12 / 8: a free multiple beside "one GPU's over the peak of all" would fit any number.
TEST(HypothesesSpec, AFreeMultipleDoesNotRescaleAnotherChange) {
  const auto read = [](double factor) {
    std::istringstream in(titan_with_mfu_times(factor));
    return read_log(in, "titan");
  };
  EXPECT_TRUE(consistent(read(1))) << contradictions(read(1));
  for (const double factor : {0.75, 1.25, 1.5}) {
    const RunRecord record = read(factor);
    const Audit told = audit(record);
    ASSERT_TRUE(told.contradicts) << factor;
    EXPECT_EQ(told.readings.front().unexplained.size(), 2u) << told.readings.front().changes[0].text;
  }
  const RunRecord whole = read(2.25 / 0.75);
  EXPECT_EQ(ids(audit(whole).readings.front()), std::vector<std::string>{"mfu_multiple"});
}

TEST(HypothesesSpec, NoReadingGivesAnMfuAboveThePeak) {
  // Four times too fast: all numbers agree with one another, and none is given as corrected.
  RunRecord fast = llama_on_16(2.8453, 368524, 1.1983, "bf16");
  Audit told = audit(fast);
  EXPECT_TRUE(told.contradicts);
  EXPECT_TRUE(told.readings.front().corrected.impossible);
  EXPECT_FALSE(told.readings.front().corrected.mfu_exact);
  EXPECT_NE(told.readings.front().corrected.missing.find("pass the dense bf16 peak"), std::string::npos);
  EXPECT_FALSE(corrects_beyond_peak(told));
  // A truthful log, of which a wrong dtype is stated.
  RunRecord honest = llama_on_16(11.3813, 92131, 0.2996, "fp32");
  EXPECT_FALSE(corrects_beyond_peak(told = audit(honest)));
  EXPECT_TRUE(told.readings.front().corrected.impossible);
  RunRecord report = tests::scaling_report_run(8);
  report.dtype = "float32";
  EXPECT_FALSE(corrects_beyond_peak(told = audit(report)));
  // Where a possible reading is found, an impossible one is far from explaining as much.
  RunRecord off = llama_on_16(11.3814, 92120, 0.2995, "bf16");
  for (const Reading& reading : audit(off).readings)
    EXPECT_FALSE(reading.corrected.impossible) << reading.cost;
}

RC_GTEST_PROP(HypothesesSpecProperty, NoReadingGivesAnMfuAboveThePeak, ()) {
  const auto spread = [](double middle) {
    return middle * std::exp2(static_cast<double>(*rc::gen::inRange(-60, 61)) / 10);
  };
  const std::string dtype = *rc::gen::element<std::string>("bf16", "fp8", "fp32", "tf32", "fp64", "fp4", "");
  const RunRecord drawn = llama_on_16(spread(11.3813), spread(92131), spread(0.2996), dtype);
  RC_ASSERT(!corrects_beyond_peak(audit(drawn)));
}

TEST(HypothesesSpec, AnUnstatedConventionIsOneOfThoseThatAreKnown) {
  const auto of_mfu = [](const RunRecord& r) { return judge("mfu", r); };
  // 92,131 tokens/s of 51.47 GFLOP by `exact`, of 61.07 by palm_total, over 16 x 989.4 TFLOP/s.
  const Result exact = of_mfu(llama_on_16(11.3813, 92131, 0.2994, "bf16"));
  EXPECT_EQ(exact.verdict, Verdict::holds);
  EXPECT_NE(exact.note.find("FLOPs counted as exact"), std::string::npos) << exact.note;
  const Result palm = of_mfu(llama_on_16(11.3813, 92131, 0.2994 * 61.0665 / 51.4712, "bf16"));
  EXPECT_EQ(palm.verdict, Verdict::holds);
  EXPECT_NE(palm.note.find("palm_total"), std::string::npos) << palm.note;
  for (const double wrong : {0.85, 0.90, 1.15}) {
    const Result told = of_mfu(llama_on_16(11.3813, 92131, 0.2994 * wrong, "bf16"));
    EXPECT_EQ(told.verdict, Verdict::contradicts) << wrong << " " << told.note;
  }
  // The peak of a B200: 2,250 TFLOP/s.
  const RunRecord other = llama_on_16(11.3813, 92131, 0.2994 * 989.4 / 2250, "bf16");
  const Audit found = audit(other);
  ASSERT_EQ(found.readings.front().changes.size(), 1u);
  EXPECT_EQ(found.readings.front().changes[0].id, "peak_other_gpu");
  EXPECT_NE(found.readings.front().changes[0].text.find("B200"), std::string::npos)
      << found.readings.front().changes[0].text;
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
