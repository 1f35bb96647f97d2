// labels: golden
// Logs that trainers printed (golden/logs/README.md), read back number by number.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::audit {
namespace {

std::string golden(const std::string& name) { return tests::source_dir() + "/golden/logs/" + name; }

double value(const RunRecord& run, Setting setting) {
  return run[setting] ? run[setting]->value : std::nan("");
}
double value(const Step& step, Field field) { return step[field] ? step[field]->value : std::nan(""); }

void expect_document_run(const RunRecord& run, double gpus, double sequences, double rate, double mfu,
                         double peak) {
  EXPECT_EQ(run.format.name, "llm_tii");
  EXPECT_EQ(run.format.convention, "palm_total");
  EXPECT_EQ(run.gpu, "NVIDIA B200");
  EXPECT_EQ(run.dtype, "bf16");
  EXPECT_EQ(value(run, Setting::gpus), gpus);
  EXPECT_EQ(value(run, Setting::micro), 24);
  EXPECT_EQ(value(run, Setting::accumulation), 64);
  EXPECT_EQ(value(run, Setting::sequences), sequences);
  EXPECT_EQ(value(run, Setting::tokens_per_step), sequences * 2048);
  EXPECT_EQ(value(run, Setting::warmup_steps), 2000);
  EXPECT_DOUBLE_EQ(value(run, Setting::peak_flops), peak);
  EXPECT_DOUBLE_EQ(value(run, Setting::flops_per_token), 8.78e9);
  EXPECT_DOUBLE_EQ(value(run, Setting::parameters), 1.294e9);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(value(run.steps[0], Field::step), 0);
  EXPECT_FALSE(run.steps[0][Field::mfu].has_value());
  const Step& step = run.steps[1];
  EXPECT_EQ(value(step, Field::step), 10);
  EXPECT_EQ(value(step, Field::tokens_per_second), rate);
  EXPECT_DOUBLE_EQ(value(step, Field::mfu), mfu);
  EXPECT_NEAR(step[Field::mfu]->high - step[Field::mfu]->low, 1e-4, 1e-12);
  EXPECT_DOUBLE_EQ(value(step, Field::memory_peak), 103.26e9);
  EXPECT_DOUBLE_EQ(value(step, Field::memory_reserved), 111.23e9);
  EXPECT_DOUBLE_EQ(value(step, Field::learning_rate), 1.65e-6);
  EXPECT_EQ(run.unread_lines, 0);
}

TEST(GoldenLogsSpec, TheTwoRunsOfTheScalingReport) {
  const RunRecord two = read_log(golden("llm_tii_2_gpus.log"));
  expect_document_run(two, 2, 3072, 106979, 0.1044, 9000e12);
  EXPECT_DOUBLE_EQ(value(two.steps[1], Field::seconds), 1.838);
  EXPECT_TRUE(two.steps[1][Field::seconds]->holds(1.8384));
  const RunRecord eight = read_log(golden("llm_tii_8_gpus.log"));
  expect_document_run(eight, 8, 12288, 106809, 0.0261, 36000e12);
  EXPECT_DOUBLE_EQ(value(eight.steps[1], Field::seconds), 29.452);
}

TEST(GoldenLogsSpec, AReportThatQuotesBothRunsTwiceGivesTwoRuns) {
  const std::vector<RunRecord> runs = read_logs(golden("llm_tii_report.md"));
  ASSERT_EQ(runs.size(), 2u);
  expect_document_run(runs[0], 2, 3072, 106979, 0.1044, 9000e12);
  expect_document_run(runs[1], 8, 12288, 106809, 0.0261, 36000e12);
}

TEST(GoldenLogsSpec, TheJsonLogOfTwoA100) {
  const RunRecord run = read_log(golden("llm_tii_run_20251115_150458.json"));
  EXPECT_EQ(run.format.name, "llm_tii");
  EXPECT_EQ(run.gpu, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(run.parallelism, "DDP+ZeRO-1");
  EXPECT_EQ(value(run, Setting::gpus), 2);
  EXPECT_EQ(value(run, Setting::parameters), 1829140480);
  EXPECT_EQ(value(run, Setting::accumulation_configured), 32);
  EXPECT_EQ(value(run, Setting::micro), 6);
  EXPECT_EQ(value(run, Setting::sequence_length), 2048);
  EXPECT_EQ(value(run, Setting::final_step), 100);
  EXPECT_DOUBLE_EQ(value(run, Setting::average_mfu), 0.3670937505585117);
  EXPECT_DOUBLE_EQ(value(run, Setting::gpu_memory), 85.097971712e9);
  ASSERT_EQ(run.steps.size(), 11u);
  EXPECT_EQ(run.steps_seen, 11);
  EXPECT_FALSE(run.steps[0][Field::mfu].has_value()) << "-100 is not measured";
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::mfu), 0.3675987226241833);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::tokens_per_second), 18828.311810670457);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::peak_flops), 624e12);
  EXPECT_DOUBLE_EQ(value(run.steps[10], Field::memory_peak), 55.539557888e9);
  EXPECT_EQ(value(run.steps[10], Field::step), 100);
}

}  // namespace
}  // namespace assay::spec::audit
