// labels: golden
// Logs that trainers printed (golden/logs/README.md), read back number by number.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::audit::golden_logs_test {
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

TEST(GoldenLogsSpec, KempnerForgeOn8H200) {
  const RunRecord run = read_log(golden("kempnerforge_13b_8_gpus.log"));
  EXPECT_EQ(run.format.name, "kempnerforge");
  EXPECT_EQ(run.gpu, "NVIDIA H200");
  EXPECT_EQ(run.schedule, "cosine");
  EXPECT_EQ(run.dtype, "bf16");
  EXPECT_EQ(value(run, Setting::parameters), 14840386560);
  EXPECT_EQ(value(run, Setting::gpus), 8);
  EXPECT_EQ(value(run, Setting::data_parallel), 2);
  EXPECT_EQ(value(run, Setting::tensor_parallel), 4);
  EXPECT_EQ(value(run, Setting::micro), 4);
  EXPECT_EQ(value(run, Setting::accumulation), 4);
  EXPECT_EQ(value(run, Setting::sequence_length), 4096);
  EXPECT_DOUBLE_EQ(value(run, Setting::learning_rate_min), 3e-5);
  EXPECT_EQ(value(run, Setting::decay_steps), 30);
  EXPECT_EQ(value(run, Setting::total_tokens), 3932160);
  EXPECT_DOUBLE_EQ(value(run, Setting::peak_flops), 989e12);
  EXPECT_EQ(value(run, Setting::ffn), 17920) << "printed as None, beside a multiplier of 1.3";
  ASSERT_EQ(run.steps.size(), 30u);
  EXPECT_EQ(run.unread_lines, 0);
  const Step& sixth = run.steps[5];
  EXPECT_EQ(value(sixth, Field::tokens_per_second), 29834);
  EXPECT_DOUBLE_EQ(value(sixth, Field::mfu), 0.359);
  EXPECT_DOUBLE_EQ(value(sixth, Field::seconds), 4.39);
  EXPECT_DOUBLE_EQ(value(sixth, Field::memory_peak), 45.0 * 0x1p30);
  EXPECT_EQ(value(sixth, Field::rank), 0);
  // 4 sequences x 4 micro-batches x 2 ranks x 4096 tokens, within what the digits allow.
  EXPECT_LT(sixth[Field::tokens_per_second]->low * sixth[Field::seconds]->low, 131072);
  EXPECT_GT(sixth[Field::tokens_per_second]->high * sixth[Field::seconds]->high, 131072);
}

TEST(GoldenLogsSpec, MegatronWithExperts) {
  const RunRecord run = read_log(golden("megatron_mixtral_16_gpus.log"));
  EXPECT_EQ(run.format.name, "megatron");
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(value(run, Setting::sequences), 128);
  EXPECT_EQ(value(run, Setting::max_steps), 100);
  EXPECT_EQ(value(run.steps[0], Field::step), 43);
  EXPECT_EQ(value(run.steps[0], Field::sequences_total), 5504);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 5.4449);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::flops_rate), 239.8e12);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::loss), 1.825991);
  EXPECT_DOUBLE_EQ(value(run.steps[2], Field::learning_rate), 9e-6);
  EXPECT_DOUBLE_EQ(value(run.steps[2], Field::gradient_norm), 1.611);
}

TEST(GoldenLogsSpec, NanotronsThreeDigits) {
  const RunRecord run = read_log(golden("nanotron_two_lines.log"));
  EXPECT_EQ(run.format.name, "nanotron");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(value(run.steps[0], Field::step), 991);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 0.045);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::tokens_total), 634e3);
  EXPECT_TRUE(run.steps[0][Field::tokens_total]->holds(634'240));
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::tokens_per_second), 15.5e3);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::flops_rate), 0.0095e12);
}

TEST(GoldenLogsSpec, NanotronsOtherNameOfItsTime) {
  const RunRecord run = read_log(golden("nanotron_time_per_iteration.log"));
  EXPECT_EQ(run.format.name, "nanotron");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(value(run.steps[0], Field::step), 211364);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 8.79);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::tokens_total), 480e9);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::loss), 2.06);
  EXPECT_DOUBLE_EQ(value(run.steps[1], Field::flops_rate), 15.5e12);
}

TEST(GoldenLogsSpec, LossesOfAPolicy) {
  const RunRecord run = read_log(golden("hugging_face_grpo.log"));
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.objective, "rewards");
  EXPECT_EQ(value(run.steps[0], Field::loss), 0);
  EXPECT_DOUBLE_EQ(value(run.steps[2], Field::gradient_norm), 0.1058727279305458);
}

TEST(GoldenLogsSpec, NanoGptOnAnA100) {
  const RunRecord run = read_log(golden("nanogpt_a100.log"));
  EXPECT_EQ(run.format.name, "nanogpt");
  ASSERT_EQ(run.steps.size(), 11u);
  EXPECT_FALSE(run.steps[0][Field::mfu].has_value());
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 9.37181);
  EXPECT_DOUBLE_EQ(value(run.steps[10], Field::mfu), 0.1659);
  EXPECT_DOUBLE_EQ(value(run.steps[10], Field::loss), 2.4049);
}

TEST(GoldenLogsSpec, LlmCOn8H100) {
  const RunRecord run = read_log(golden("llmc_gpt2_1558m_8_gpus.log"));
  EXPECT_EQ(run.format.name, "llmc");
  EXPECT_EQ(value(run, Setting::gpus), 8);
  EXPECT_EQ(value(run, Setting::accumulation), 8);
  EXPECT_EQ(value(run, Setting::micro), 16);
  EXPECT_EQ(value(run, Setting::sequence_length), 1024);
  EXPECT_EQ(value(run, Setting::tokens_per_step), 1048576);
  EXPECT_EQ(value(run, Setting::parameters), 1557686400);
  EXPECT_EQ(value(run, Setting::max_steps), 32000);
  ASSERT_EQ(run.steps.size(), 10u);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 3.05636);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::mfu), 0.426);
  EXPECT_DOUBLE_EQ(value(run.steps[9], Field::gradient_norm), 10.5923);
  EXPECT_EQ(value(run.steps[9], Field::tokens_per_second), 381369);
}

TEST(GoldenLogsSpec, TorchtitanBehindTorchrun) {
  const RunRecord run = read_log(golden("torchtitan_debug_model.log"));
  EXPECT_EQ(run.format.name, "torchtitan");
  ASSERT_EQ(run.steps.size(), 5u);
  EXPECT_EQ(value(run.steps[0], Field::rank), 0);
  EXPECT_EQ(value(run.steps[0], Field::step), 3);
  EXPECT_EQ(value(run.steps[0], Field::tokens_per_second), 30768);
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::flops_rate), 3.15e12);
  EXPECT_DOUBLE_EQ(value(run.steps[4], Field::mfu), 0.0036);
}

TEST(GoldenLogsSpec, LlmQOnAnRtx4090) {
  const RunRecord run = read_log(golden("llmq_rtx_4090.log"));
  EXPECT_EQ(run.format.name, "llmq");
  EXPECT_EQ(run.gpu, "NVIDIA GeForce RTX 4090");
  EXPECT_DOUBLE_EQ(value(run, Setting::gpu_memory), 24080.0 * 0x1p20);
  ASSERT_EQ(run.steps.size(), 4u) << "the [V] line is a validation";
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::seconds), 1.869);
  EXPECT_EQ(value(run.steps[0], Field::tokens_per_second), 35064);
  // 65,536 tokens: 8 sequences x 8 micro-batches x 1024.
  EXPECT_LT(run.steps[0][Field::tokens_per_second]->low * run.steps[0][Field::seconds]->low, 65536);
  EXPECT_GT(run.steps[0][Field::tokens_per_second]->high * run.steps[0][Field::seconds]->high, 65536);
  EXPECT_DOUBLE_EQ(value(run.steps[3], Field::mfu), 0.468);
}

TEST(GoldenLogsSpec, HuggingFacesPrintedDictionaries) {
  const RunRecord run = read_log(golden("hugging_face_alpaca.log"));
  EXPECT_EQ(run.format.name, "hugging_face");
  ASSERT_EQ(run.steps.size(), 4u);
  EXPECT_TRUE(run.steps[0][Field::loss]->holds(0.00094));
  EXPECT_FALSE(run.steps[0][Field::loss]->holds(0.00096));
  EXPECT_DOUBLE_EQ(value(run.steps[0], Field::learning_rate), 5.093132756872621e-11);
  EXPECT_EQ(value(run.steps[3], Field::learning_rate), 0);
}

}  // namespace
}  // namespace assay::spec::audit::golden_logs_test
