// labels: unit cli
// `assay bench`: its arguments, its tables and JSON, and the program itself where it is built.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "impl/cli/bench/bench_print.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "tests/cli/bench/bench_words.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::bench_test {
namespace {

namespace fs = std::filesystem;
using namespace impl::bench;
using impl::cli::BenchPlan;
using spec::time::StepClass;
using spec::time::StepOp;
using spec::time::StepPass;
using tests::expect_word;

TEST(BenchCli, SaysWhatItMeasuresAndGuessesWords) {
  expect_word(tests::bench_refusal({}), "ceilings, ops, step or scaling; name one");
  expect_word(tests::bench_refusal({"cielings"}), "did you mean \"ceilings\"?");
  expect_word(tests::bench_refusal({"ops", "llama3-8b"}), "a model is given as --model NAME");
  expect_word(tests::bench_refusal({"ops", "--model", "llama4"}), "llama");
  expect_word(tests::bench_refusal({"ops", "--model", "deepseek-v3"}), "multi-token prediction");
  expect_word(tests::bench_refusal({"ops", "--dtype", "fp8"}), "compute.dtype");
  expect_word(tests::bench_refusal({"ops", "--device", "tpu"}), "compute.device");
  expect_word(tests::bench_refusal({"ops", "--micro", "0"}), "--micro");
}

TEST(BenchCli, OptionsOfAnotherSubjectAreRefusedNotIgnored) {
  expect_word(tests::bench_refusal({"step", "--model", "tiny-llama"}), "the recipe says it");
  expect_word(tests::bench_refusal({"step", "--tune", "200"}), "the recipe says it");
  expect_word(tests::bench_refusal({"step", "parallel.tensor=2"}),
              "measures one rank: add parallel.tensor=1");
  expect_word(tests::bench_refusal({"ops", "--tune", "200"}), "`assay bench ceilings` tunes");
  expect_word(tests::bench_refusal({"ceilings", "--run", "x"}), "only a step");
  expect_word(tests::bench_refusal({"step", "batch.sequences=7", "batch.micro=0", "no.such=3"}), "no.such");
}

TEST(BenchCli, ReadsItsOptions) {
  const BenchPlan ops = tests::bench_plan({"ops", "--model", "tiny-qwen3", "--micro", "3", "--seq", "64",
                                           "--dtype", "bf16", "--device", "cpu", "--repeats", "7", "--json"});
  EXPECT_EQ(ops.what, "ops");
  EXPECT_EQ(ops.model->name, "tiny-qwen3");
  EXPECT_EQ(ops.micro, 3);
  EXPECT_EQ(ops.tokens, 64);
  EXPECT_EQ(ops.dtype, Dtype::bf16);
  EXPECT_EQ(ops.device, spec::Device::cpu);
  EXPECT_EQ(ops.repeats, 7);
  EXPECT_TRUE(ops.json);
  const BenchPlan step = tests::bench_plan({"step", "train.seed=3", "--run", "runs/a"});
  EXPECT_EQ(step.config->seed, 3u);
  EXPECT_EQ(step.run_folder, "runs/a");
  EXPECT_EQ(step.repeats, 3);
  EXPECT_EQ(tests::bench_plan({"ceilings"}).dtype, std::nullopt);
}

Subject h200() {
  return {.device = "NVIDIA H200",
          .model = "llama-1.36b",
          .micro = 24,
          .tokens = 2048,
          .dtype = "bf16",
          .ceiling = {.peak = 1000e12, .bandwidth = 4e12}};
}

TEST(BenchCli, RowsByHand) {
  expect_word(
      impl::cli::bench_heading(h200()),
      "llama-1.36b, 24 x 2,048 tokens a micro-batch, bf16, on NVIDIA H200: 1.00 PFLOP/s dense, 4.00 TB/s");
  const Row gemm{.name = "qkv forward",
                 .kind = StepClass::gemm,
                 .calls = 20,
                 .equal_calls = 18,
                 .seconds = 2e-3,
                 .fastest = 1.9e-3,
                 .flops = 1.2e12,
                 .bytes = 4e9,
                 .roofline = 1.2e-3};
  const std::string line = impl::cli::bench_row(gemm, h200(), true);
  for (const char* word : {"qkv forward", " 2.000 ", " 20 ", " 36.00 ", " 600 ", " 2000 ", "60.0 %"})
    expect_word(line, word);
  const Row copy{.name = "copy", .seconds = 1e-3, .bytes = 3e9, .roofline = {}};
  expect_word(impl::cli::bench_row(copy, h200(), false), "75.0 %");
  Subject cpu = h200();
  cpu.device = "CPU", cpu.ceiling = {}, cpu.threads = 2;
  expect_word(impl::cli::bench_heading(cpu), "on CPU with 2 threads; its peak is not known");
  EXPECT_EQ(impl::cli::bench_row(copy, cpu, false).find('%'), std::string::npos);
  expect_word(impl::cli::bench_columns(cpu, true), "GFLOP/s");
  expect_word(impl::cli::bench_sums({gemm, gemm}), "gemm 72.0 ms");
}

StepTimes example_step() {
  StepTimes times;
  times.subject = h200();
  times.sequences = 96, times.steps = 3;
  times.plain_seconds = 0.99;
  times.step = {.seconds = 1,
                .parts = {{StepOp::qkv, StepPass::forward, 72, 0.8},
                          {StepOp::attention, StepPass::backward, 72, 0.1},
                          {StepOp::rms_norm, StepPass::forward, 148, 0.06},
                          {StepOp::adamw, StepPass::update, 1, 0.02}},
                .between = 0.02};
  times.exact_flops = 650e12, times.executed_flops = 700e12;
  times.waterfall = spec::time::waterfall(times.step, {.gemms = 600e12, .attention = 50e12, .peak = 1000e12});
  return times;
}

TEST(BenchCli, TheStepTableShowsTheWaterfallThePartsAndTheirSum) {
  const std::string text = impl::cli::step_table(example_step());
  for (const char* word :
       {"a step of 96 sequences: 1000.00 ms taken apart, 990.00 ms not", "exact MFU 65.0 %", "HFU 70.0 %",
        "exact FLOPs at the peak", "attention beyond the peak's time", "qkv forward", "between the ops",
        "sum of these lines: 1000.00 ms, 100.00 % of the step"})
    expect_word(text, word);
}

TEST(BenchCli, JsonHoldsWhatTheTablesShow) {
  spec::document::Node root;
  const std::string text = impl::cli::step_json(example_step());
  ASSERT_FALSE(spec::read_json(text, root)) << text;
  const spec::document::Tree tree({"bench"}, std::move(root));
  EXPECT_EQ(tree.root().at("schema").text(), "assay.bench.step/1");
  EXPECT_EQ(tree.root().at("step_seconds").real(), 1);
  EXPECT_NEAR(tree.root().at("mfu").real(), 0.65, 1e-12);
  EXPECT_EQ(tree.root().at("waterfall").size(), 8u);
  EXPECT_EQ(tree.root().at("parts")[0].at("name").text(), "qkv forward");
  const std::string rows =
      impl::cli::rows_json("ops", h200(), {{.name = "a", .seconds = 1, .roofline = 0.5}});
  spec::document::Node rows_root;
  ASSERT_FALSE(spec::read_json(rows, rows_root)) << rows;
  const spec::document::Tree rows_tree({"bench"}, std::move(rows_root));
  EXPECT_EQ(rows_tree.root().at("rows")[0].at("roofline_share").real(), 0.5);
}

class BenchProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }
  tests::Scratch scratch;
};

TEST_F(BenchProgram, MeasuresOpsAndCeilingsOfATinyModelOnTheCpu) {
  for (const char* what : {"ops", "ceilings"}) {
    const auto outcome =
        tests::shell(tests::assay_path() + " bench " + what +
                         " --device cpu --model tiny-qwen3 --micro 1 --seq 32 --repeats 2 --json",
                     120);
    ASSERT_EQ(outcome.code, 0) << outcome.messages;
    spec::document::Node root;
    ASSERT_FALSE(spec::read_json(outcome.output, root)) << outcome.output;
    const spec::document::Tree tree({what}, std::move(root));
    EXPECT_EQ(tree.root().at("device").text(), "CPU");
    EXPECT_GT(tree.root().at("rows").size(), 15u);
  }
}

TEST_F(BenchProgram, TakesAStepApartAndPutsItIntoTheRunsReport) {
  const std::string run = (scratch.path() / "run").string(),
                    settings = " compute.device=cpu compute.threads=1 batch.sequences=2 ";
  ASSERT_EQ(tests::shell(tests::assay_path() +
                             " train train.steps=2 sample.sentences=0 run.directory=" + run + settings,
                         120)
                .code,
            0);
  const auto outcome =
      tests::shell(tests::assay_path() + " bench step --repeats 1 --run " + run + settings, 120);
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  expect_word(outcome.output, "peak is not known");
  expect_word(outcome.output, "GEMMs");
  expect_word(outcome.messages, "waterfall.json");
  const auto reported = tests::assay({"report", run});
  ASSERT_EQ(reported.code, 0) << reported.messages;
  std::ifstream page(run + "/report.html");
  expect_word(std::string(std::istreambuf_iterator<char>(page), {}), "Where the time goes");
}

TEST_F(BenchProgram, AFolderThatIsNotThereIsAnErrorOfTheDisk) {
  const auto outcome = tests::shell(
      tests::assay_path() + " bench step --repeats 1 compute.device=cpu batch.sequences=1 --run " +
          (scratch.path() / "none").string(),
      120);
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::io));
  EXPECT_EQ(outcome.messages.find("assay: error: "), 0u) << "measured first: " << outcome.messages;
  expect_word(outcome.messages, "takes the folder of a run");
}

}  // namespace
}  // namespace assay::bench_test
