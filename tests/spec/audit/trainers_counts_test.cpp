// labels: unit golden
// What trainers count in a way of their own that is no mistake: parameters without positions, attention over
// all pairs, FLOPs that follow from a header, batches that grow.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/conventions.hpp"
#include "spec/audit/hypotheses.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::trainers_counts_test {
namespace {

using tests::read_text;

std::string nanogpt(const std::string& parameters, const std::string& vocab = "") {
  return (vocab.empty() ? "" : "defaulting to vocab_size of GPT-2 to " + vocab + " (50257 rounded up)\n") +
         "number of parameters: " + parameters +
         "M\niter 0: loss 10.9886, time 4105.11ms, mfu -100.00%\niter 10: loss 9.7023, time 4105.11ms, mfu "
         "32.80%\n";
}

/// 124,439,808 with 1,024 x 768 positions; nanoGPT leaves them out, and may drop biases and pad the
/// vocabulary: 123,653,376 and 123,587,328.
TEST(TrainersCountsSpec, Gpt2sParametersAreCountedWithAndWithoutPositions) {
  for (const auto& [printed, vocab] :
       {std::pair("123.59", "50304"), std::pair("123.65", ""), std::pair("124.44", "")}) {
    RunRecord run = read_text(nanogpt(printed, vocab));
    const Audit found = audit(run);
    EXPECT_EQ(found.model, "gpt2") << printed;
    run.model = "gpt2";
    const Result parameters = judge("parameters", run);
    EXPECT_EQ(parameters.verdict, Verdict::holds) << printed;
    EXPECT_EQ(parameters.note, "gpt2 has 124,439,808, 123,653,376 without its learned positions");
  }
  RunRecord other = read_text(nanogpt("120.00"));
  EXPECT_EQ(audit(other).model, "");
  other.model = "gpt2";
  EXPECT_EQ(judge("parameters", other).verdict, Verdict::contradicts);
  EXPECT_NE(judge("parameters", other).note, "");
}

/// 6 N + 12 L D T: N as printed (rounded or cut off), however many the model may have, or all
/// counts that it may have.
TEST(TrainersCountsSpec, NanoGptsFlopsRestOnWhatItPrints) {
  const auto flops = [](RunRecord run) {
    run.model = "gpt2";
    run.state(Setting::sequence_length, exactly(1024, 0), "--seq 1024");
    return counted_flops(Evidence(run), "nanogpt_legacy_v1").value();
  };
  const double attention = 12.0 * 12 * 768 * 1024;
  const Interval of_printed = flops(read_text(nanogpt("123.59", "50304")));
  EXPECT_DOUBLE_EQ(of_printed.low, 6 * 123.585e6 + attention);
  EXPECT_DOUBLE_EQ(of_printed.high, 6 * 123.6e6 + attention);
  // Without biases and 50,257 rows; with them and 50,304.
  const std::string log = nanogpt("123.59");
  const Interval of_all = flops(read_text(log.substr(log.find("iter 0"))));
  EXPECT_DOUBLE_EQ(of_all.low, 6 * 123551232.0 + attention);
  EXPECT_DOUBLE_EQ(of_all.high, 6 * 123689472.0 + attention);
}

/// Other trainers count positions or not: either is told, neither contradicts.
TEST(TrainersCountsSpec, ACountWithoutPositionsIsNoContradictionElsewhere) {
  RunRecord run = read_text("step,loss\n1,10.9\n2,10.8\n", "model=gpt2,parameters=123653376");
  EXPECT_EQ(judge("parameters", run).verdict, Verdict::holds);
  run = read_text("step,loss\n1,10.9\n2,10.8\n", "model=gpt2,parameters=124439808");
  EXPECT_EQ(judge("parameters", run).verdict, Verdict::holds);
}

/// Megatron-LM counted attention over all pairs before it counted half of them; its log names no version.
TEST(TrainersCountsSpec, MegatronsCountOfAllPairsIsNoContradiction) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    tests::SimulatedRun run = tests::simulate(tests::LogFormat::megatron, seed);
    const auto& m = run.model;
    run.accounting.flops_per_token +=
        6.0 * static_cast<double>(m.layers * m.heads * m.head_dim * run.sequence_length);
    const RunRecord record = read_text(render(run));
    EXPECT_TRUE(consistent(record)) << seed << "\n" << contradictions(record);
    drawn += judge("flops_rate_of_batch", record).verdict == Verdict::holds;
  }
  EXPECT_GT(drawn, 10);
}

/// llm.c likewise: its discussion 481 prints 49.0 % at 177,968 tokens/s, 6 N + 12 L D T of an A100's 312
/// TFLOP/s.
TEST(TrainersCountsSpec, LlmCsCountOfAllPairsIsNoContradiction) {
  EXPECT_NEAR((6 * 124475904.0 + 12 * 12 * 768 * 1024.0) * 177968 / 312e12, 0.490, 0.001);
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    tests::SimulatedRun run = tests::simulate(tests::LogFormat::llmc, seed);
    const auto& m = run.model;
    run.accounting.flops_per_token += 6.0 * static_cast<double>(m.layers * m.width * run.sequence_length);
    const RunRecord record = read_text(render(run));
    EXPECT_TRUE(consistent(record)) << seed << "\n" << contradictions(record);
    drawn += judge("mfu_of_batch", record).verdict == Verdict::holds;
  }
  EXPECT_GT(drawn, 10);
}

/// Megatron's --rampup-batch-size: the batch of a line is that of its step alone.
TEST(TrainersCountsSpec, ABatchThatRampsUpIsNoContradiction) {
  std::string log;
  int seen = 0;
  for (int i = 1; i <= 8; ++i) {
    const int batch = i <= 2 ? 32 : i <= 4 ? 64 : 96;
    seen += batch;
    log +=
        " iteration        " + std::to_string(i) +
        "/     500 | consumed samples:          " + std::to_string(seen) +
        " | elapsed time per iteration (ms): 1131.1 | learning rate: 6.000000E-07 | global batch size:    " +
        std::to_string(batch) +
        " | lm loss: 1.200000E+01 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:   0 |\n";
  }
  const RunRecord run = read_text(log);
  EXPECT_EQ(run.steps.size(), 8u);
  EXPECT_FALSE(run[Setting::sequences].has_value());
  EXPECT_TRUE(consistent(run)) << contradictions(run);
}

/// The arguments state one batch and no ramp, the lines another: what was consumed tells.
TEST(TrainersCountsSpec, ABatchThatNoRampLeadsToIsHeldAgainstWhatWasConsumed) {
  const auto log = [](const std::string& ramp, int shown, int consumed) {
    std::string out =
        "------------------------ arguments ------------------------\n"
        "  global_batch_size ............................... 512\n"
        "  rampup_batch_size ............................... " +
        ramp +
        "\n"
        "-------------------- end of arguments ---------------------\n";
    for (int i = 1; i <= 8; ++i)
      out += " iteration        " + std::to_string(i) +
             "/     500 | consumed samples:          " + std::to_string(i * consumed) +
             " | elapsed time per iteration (ms): 1131.1 | learning rate: 6.000000E-07 | global batch size:  "
             "  " +
             std::to_string(shown) +
             " | lm loss: 1.200000E+01 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:   "
             "0 |\n";
    return out;
  };
  EXPECT_EQ(judge("sequences_total", read_text(log("None", 512, 512))).verdict, Verdict::holds);
  EXPECT_EQ(judge("step_sequences", read_text(log("None", 256, 512))).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("sequences_total", read_text(log("None", 512, 256))).verdict, Verdict::contradicts);
  EXPECT_FALSE(read_text(log("[256, 64, 1000]", 256, 256))[Setting::sequences].has_value());
}

/// --seq on a log whose tokens per step say otherwise: the length is the cause.
TEST(TrainersCountsSpec, ALengthThatTheTokensPerStepRefuteIsTheCause) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const tests::SimulatedRun run = tests::simulate(tests::LogFormat::assay, seed);
    RunRecord record = read_text(render(run));
    record[Setting::sequence_length] = exactly(2.0 * static_cast<double>(run.sequence_length));
    const Audit one = audit(record);
    EXPECT_TRUE(one.contradicts) << seed;
    bool named = false;
    for (const Change& change : one.readings.front().changes) named |= change.id == "sequence_length_other";
    EXPECT_TRUE(named) << seed;
    ++drawn;
  }
  EXPECT_EQ(drawn, 20);
}

/// torchtitan's first lines of a model of no known shape: 6 (6,163,712 - 2,048 x 256) + 12 x 6 x 256 x 2,048
/// = 71,585,280 FLOPs per token. `times`: of the printed FLOP/s and MFU.
RunRecord small_titan(const std::string& mesh, double times) {
  const std::string head = "[rank0]:[titan] 2025-11-25 19:44:5";
  std::string log =
      head + "4,104 - root - INFO - CUDA capacity: NVIDIA H200 with 139.81GiB memory\n" + head +
      "5,287 - root - INFO - " + mesh + "\n" + head +
      "8,537 - root - INFO - Building llama3 debugmodel with TransformerModelArgs(dim=256, "
      "n_layers=6, n_heads=16, n_kv_heads=None, vocab_size=2048, multiple_of=256)\n" +
      head + "8,595 - root - INFO - Model llama3 debugmodel size: 6,163,712 total parameters\n" + head +
      "8,838 - root - INFO - Trainer is initialized with local batch size 8, global batch size "
      "64, gradient accumulation steps 1, sequence length 2048, total steps 10 (warmup 2)\n";
  for (int step = 1; step <= 8; ++step) {
    const double rate = 300000 + 1000 * step, flops = 71585280.0 * rate * times;
    char line[240];
    std::snprintf(line, sizeof line,
                  "9,%03d - root - INFO - step: %2d  loss:  7.5%d  grad_norm:  1.4604  memory:  "
                  "1.34GiB(0.96%%)  tps: %d,%03d  tflops: %.2f  mfu: %.2f%%\n",
                  100 * step, step, step, static_cast<int>(rate) / 1000, static_cast<int>(rate) % 1000,
                  flops / 1e12, 100 * flops / 989e12);
    log += head + line;
  }
  std::istringstream in(log);
  return read_log(in, "titan");
}

TEST(TrainersCountsSpec, TorchtitansFlopsFollowFromItsHeader) {
  const char* const mesh = "Building 1-D device mesh with ['dp_shard'], [8]";
  EXPECT_EQ(judge("flops_rate", small_titan(mesh, 1)).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu", small_titan(mesh, 1)).verdict, Verdict::holds);
  EXPECT_EQ(judge("flops_rate", small_titan(mesh, 1.05)).verdict, Verdict::contradicts);
}

TEST(TrainersCountsSpec, AMeshThatCannotBeReadSaysNothingOfTheGpus) {
  EXPECT_EQ(small_titan("Building 1-D device mesh with ['dp_shard'], [8]", 1)[Setting::gpus]->value, 8);
  EXPECT_EQ(small_titan("Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]", 1)[Setting::gpus]->value,
            16);
  EXPECT_EQ(small_titan("Building 1-D device mesh with [&#39;dp_shard&#39;], [8]", 1)[Setting::gpus]->value,
            8);
  for (const char* mesh :
       {"Building 1-D device mesh with [?dp_shard?], [8]", "Building 1-D device mesh with ['dp_shard'], [",
        "Building 1-D device mesh with ", "Building 2-D device mesh with ['dp_shard', 'tp'], [8, ",
        "Building 2-D device mesh with ['dp_shard', 'tp'], [8]", "Building device mesh with parallelism: "}) {
    const RunRecord run = small_titan(mesh, 1);
    EXPECT_FALSE(run[Setting::gpus]) << mesh;
    EXPECT_EQ(judge("sequences", run).verdict, Verdict::cannot_be_judged) << mesh;
    EXPECT_TRUE(contradictions(run).empty()) << mesh << ": " << contradictions(run);
  }
}

}  // namespace
}  // namespace assay::spec::audit::trainers_counts_test
