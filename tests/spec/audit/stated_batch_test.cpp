// labels: unit
// Headers that say one thing twice: global batches and their parts, nanoGPT's constant peak, Megatron's
// length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::stated_batch_test {
namespace {

using tests::read_text;

bool told(const Audit& audit, const std::string& id) {
  for (const Reading& reading : audit.readings)
    for (const Change& change : reading.changes)
      if (equally(audit.readings.front(), reading) &&
          (change.id == id || std::count(change.alternative_ids.begin(), change.alternative_ids.end(), id)))
        return true;
  return false;
}

/// torchtitan on 8 H100, a micro-batch of one, 1.3 s a step; `stated` sequences in its header.
std::string torchtitan(int stated) {
  const auto stamp = [](double seconds) {
    char text[64];
    std::snprintf(text, sizeof text, "[titan] 2025-11-20 09:13:%06.3f - root - INFO - ", seconds);
    std::string out = text;
    std::replace(out.begin(), out.end(), '.', ',');
    return out;
  };
  std::string out = stamp(0) + "Building 1-D device mesh with ['dp_shard'], [8]\n" + stamp(0) +
                    "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n" + stamp(0) +
                    "Trainer is initialized with local batch size 1, global batch size " +
                    std::to_string(stated) +
                    ", gradient accumulation steps 1, sequence length 8192, total steps 100 (warmup 20)\n";
  for (int step = 1; step <= 30; ++step)
    out += stamp(10 + 1.3 * step) + "step: " + std::to_string(step) +
           "  loss: 10.0000  grad_norm:  3.1000  memory: 42.00GiB(53.10%)  tps: 6,302\n";
  return out;
}

TEST(StatedBatchSpec, TorchtitansPartsWinOverItsGlobalBatch) {
  const double truth = audit(read_text(torchtitan(8))).readings.front().corrected.tokens_per_second->middle();
  EXPECT_NEAR(truth, 8 * 6302, 10);
  for (const int stated : {4, 12, 16, 64}) {
    const RunRecord record = read_text(torchtitan(stated));
    const Audit whole = audit(record);
    const Reading& best = whole.readings.front();
    ASSERT_TRUE(whole.contradicts) << stated;
    EXPECT_EQ(best.changes.front().id, "batch_stated_other") << stated;
    ASSERT_TRUE(best.corrected.tokens_per_second.has_value()) << stated;
    EXPECT_NEAR(best.corrected.tokens_per_second->middle(), truth, 1) << stated;
  }
}

/// nanoGPT's header and lines: 12 sequences of 1,024, 40 passes shared by `ranks`, 250 ms a step; the MFU of
/// one rank over an A100's peak.
std::string nano_gpt(const std::string& tokens, int micro, int ranks, double mfu_factor = 1) {
  const double flops = 6 * 123.59e6 + 12.0 * 12 * 768 * 1024,
               mfu = flops * 12 * 1024 * 40 / ranks / 0.25 / 312e12 * mfu_factor;
  std::string out = "tokens per iteration will be: " + tokens + "\nbatch_size = " + std::to_string(micro) +
                    "\nblock_size = 1024\ngradient_accumulation_steps = 40\nnumber of parameters: 123.59M\n";
  for (int i = 0; i <= 100; i += 10) {
    char line[128];
    std::snprintf(line, sizeof line, "iter %d: loss %.4f, time 250.00ms, mfu %.2f%%\n", i, 10 - 0.01 * i,
                  i == 0 ? -100.0 : 100 * mfu);
    out += line;
  }
  return out;
}

TEST(StatedBatchSpec, NanoGptsTokensPerIterationAreItsPartsProduct) {
  EXPECT_EQ(judge("tokens_per_step", read_text(nano_gpt("491,520", 12, 8))).verdict, Verdict::holds);
  for (const auto& [tokens, micro] : {std::pair("245,760", 12), std::pair("491,520", 6)}) {
    const RunRecord record = read_text(nano_gpt(tokens, micro, 8));
    const Audit whole = audit(record);
    EXPECT_TRUE(whole.contradicts) << tokens;
    EXPECT_TRUE(told(whole, "batch_stated_other")) << tokens;
    EXPECT_TRUE(told(whole, "micro_other")) << tokens;
  }
}

/// train.py of April 2023 prints the tokens of one rank, behind its settings; with one rank it first makes
/// eight times the configured passes.
TEST(StatedBatchSpec, NanoGptsOlderTokensPerIterationAreOfOneRank) {
  const double flops = 6 * 123.59e6 + 12.0 * 12 * 768 * 1024;
  const auto log = [&](int passes) {
    std::string out =
        "batch_size = 12\nblock_size = 1024\ngradient_accumulation_steps = 5\ntotal number of tokens per "
        "iteration: " +
        std::to_string(12 * 1024 * passes) + "\nnumber of parameters: 123.59M\n";
    for (int i = 0; i <= 100; i += 10) {
      char line[128];
      std::snprintf(line, sizeof line, "iter %d: loss %.4f, time 2000.00ms, mfu %.2f%%\n", i, 10 - 0.01 * i,
                    i == 0 ? -100.0 : 100 * flops * 12 * 1024 * passes / 2 / 312e12);
      out += line;
    }
    return out;
  };
  for (const int passes : {5, 40}) {
    const RunRecord run = read_text(log(passes));
    ASSERT_TRUE(run[Setting::accumulation]);
    EXPECT_EQ(run[Setting::accumulation]->value, passes);
    EXPECT_FALSE(audit(run).contradicts) << passes;
    for (const char* set : {"gpus=1", "gpus=4"}) {
      const RunRecord of_several = read_text(log(passes), set);
      EXPECT_EQ(judge("mfu_of_batch", of_several).verdict, Verdict::holds) << passes << set;
      EXPECT_FALSE(audit(of_several).contradicts) << passes << set;
    }
  }
}

/// It divides by 312 TFLOP/s whatever it runs on, so no GPU need be known, nor how many ranks share the
/// passes.
TEST(StatedBatchSpec, NanoGptsMfuIsHeldToItsConstantPeak) {
  for (const int ranks : {1, 5, 8, 40})
    EXPECT_EQ(judge("mfu_of_batch", read_text(nano_gpt("491,520", 12, ranks))).verdict, Verdict::holds);
  for (const double factor : {0.7, 1.1, 1.5})
    EXPECT_EQ(judge("mfu_of_batch", read_text(nano_gpt("491,520", 12, 8, factor))).verdict,
              Verdict::contradicts)
        << factor;
  EXPECT_EQ(judge("mfu_of_batch", read_text(nano_gpt("491,520", 12, 8, 2), "gpus=8")).verdict,
            Verdict::contradicts);
}

TEST(StatedBatchSpec, NanoGptOnAFasterGpuIsSoundAndCorrectedToItsPeak) {
  const RunRecord record = read_text(nano_gpt("491,520", 12, 8), "gpus=8,gpu=NVIDIA H100 80GB HBM3");
  const Audit whole = audit(record);
  EXPECT_FALSE(whole.contradicts);
  const Reading& best = whole.readings.front();
  EXPECT_NE(best.interpretation.note.find("312.0 TFLOP/s"), std::string::npos) << best.interpretation.note;
  ASSERT_TRUE(best.corrected.mfu_palm_total.has_value());
  EXPECT_NEAR(best.corrected.mfu_palm_total->middle(), 0.2123, 0.001);
}

/// At twice the length the causal half is what all pairs are at the stated one: an earlier version and FLOP/s
/// of one rank of two make the same number, by two assumptions.
TEST(StatedBatchSpec, MegatronsWrongLengthIsNamedBeforeAnEarlierVersionsMistake) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 200 && drawn < 10; ++seed) {
    const tests::SimulatedRun run = tests::simulate(tests::LogFormat::megatron, seed);
    if (run.tensor_parallel * run.pipeline_parallel != 2 || run.sequence_length < 2048) continue;
    tests::Report report = tests::report(run);
    *report[Setting::sequence_length] /= 2;
    const RunRecord record = read_text(render(run, report));
    const Audit whole = audit(record);
    ASSERT_TRUE(whole.contradicts) << seed;
    EXPECT_EQ(whole.readings.front().changes.front().id, "sequence_length_other") << seed;
    ++drawn;
  }
  EXPECT_EQ(drawn, 10);
}

/// nanotron's lines of 524,288 tokens in 1.92 s, whose batch is `share` times that.
std::string nanotron(double share) {
  std::string out;
  const auto three = [](double x) {
    char text[32];
    if (x >= 1e6)
      std::snprintf(text, sizeof text, "%.3gM", x / 1e6);
    else
      std::snprintf(text, sizeof text, "%.3gK", x / 1e3);
    return std::string(text);
  };
  for (int k = 1; k <= 30; ++k) {
    const double ms = 1920 + 10 * (k % 3);
    out += "01/17/2025 13:47:28 [INFO|DP=0|PP=0|TP=0|node-1]: iteration: " + std::to_string(k) +
           " / 1000 | consumed_tokens: " + three(524288.0 * k) +
           " | elapsed_time_per_iteration_ms: " + three(ms) + " | tokens_per_sec: " + three(524288e3 / ms) +
           " | tokens_per_sec_per_gpu: " + three(524288e3 / ms / 16) +
           " | global_batch_size: " + three(524288 * share) +
           " | lm_loss: 9.5 | lr: 3e-07 | model_tflops_per_gpu: 142 | hardware_tflops_per_gpu: 142 | "
           "grad_norm: 2\n";
  }
  return out;
}

TEST(StatedBatchSpec, ABatchOfTheLinesThatRateAndCountDenyIsTheWrongOne) {
  EXPECT_EQ(audit(read_text(nanotron(1))).contradicts, false);
  for (const double share : {0.5, 2.0, 1.3}) {
    const RunRecord record = read_text(nanotron(share));
    const Audit whole = audit(record);
    const Reading& best = whole.readings.front();
    ASSERT_EQ(best.changes.size(), 1u) << share;
    EXPECT_EQ(best.changes.front().id, "batch_of_lines") << share;
    ASSERT_TRUE(best.corrected.tokens_per_second.has_value()) << share;
    EXPECT_NEAR(best.corrected.tokens_per_second->middle() / 272e3, 1, 0.02) << share;
    if (share != 1.3) {
      EXPECT_EQ(
          best.changes.front().text.rfind(share == 2 ? "the lines' batch is 2 times that of a step"
                                                     : "the lines' batch is 0.5000 times that of a step",
                                          0),
          0u)
          << best.changes.front().text;
    }
    EXPECT_TRUE(whole.readings.size() < 2 || !equally(best, whole.readings[1])) << share;
  }
}

TEST(StatedBatchSpec, AMicroBatchAndItsPassesExplainSequencesAlike) {
  int seen = 0;
  for (std::uint64_t seed = 5000; seed < 5040; ++seed) {
    const tests::SimulatedRun run = tests::simulate(tests::LogFormat::megatron, seed);
    tests::Report report = tests::report(run);
    if (run.micro % 2 || run.accumulation % 2 || !report[Setting::micro]) continue;
    *report[Setting::micro] /= 2;
    const RunRecord record = read_text(render(run, report));
    const Audit whole = audit(record);
    if (judge("sequences", record).verdict != Verdict::contradicts) continue;
    ++seen;
    EXPECT_TRUE(told(whole, "micro_other")) << seed;
    EXPECT_TRUE(told(whole, "sequences_of_other_accumulation")) << seed;
    const auto at = std::find_if(whole.results.begin(), whole.results.end(),
                                 [](const Result& r) { return r.id == "sequences"; });
    EXPECT_NE(at->causes.front().text.find(" or "), std::string::npos) << at->causes.front().text;
  }
  EXPECT_GE(seen, 1);
}

}  // namespace
}  // namespace assay::spec::audit::stated_batch_test
