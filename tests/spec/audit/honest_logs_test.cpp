// labels: unit golden
// Lines that trainers truthfully print and that an audit must not accuse: peaks as they round them.
#include <gtest/gtest.h>

#include <fstream>

#include "spec/audit/evidence.hpp"
#include "spec/audit/hypotheses.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::honest_logs_test {
namespace {

using tests::read_text;

std::string torchtitan_line(int step, const char* tps, const char* tflops, const char* mfu) {
  return "[rank0]:[titan] 2025-10-16 10:00:00,000 - root - INFO - step: " + std::to_string(step) +
         "  loss:  5.4321  grad_norm:  1.2345  memory: 60.10GiB(75.90%)  tps: " + tps +
         "  tflops: " + tflops + "  mfu: " + mfu + "%\n";
}

TEST(HonestLogsSpec, TheLineOfTorchtitan1884HoldsWithItsGpuNamed) {
  // torchtitan#1884, llama3 8B at 8192 on 8 H100 SXM; torchtitan divides by 989, the whitepaper prints 989.4.
  const RunRecord record = read_text(torchtitan_line(10, "5,615", "325.20", "32.88"),
                                     "model=llama3-8b,gpu=H100 SXM,gpus=8,sequence_length=8192");
  const Audit found = audit(record);
  EXPECT_FALSE(found.contradicts) << contradictions(record);
  EXPECT_EQ(judge("mfu_of_flops_rate", record).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu", record).verdict, Verdict::holds);
}

TEST(HonestLogsSpec, StepsOnH200AreNotBlamedOnAnotherPrecisionsPeak) {
  // 989e12 of 5,615 .. 6,800 tokens/s at 57.913 GFLOP per token; the data sheet's sparse tf32 peak is 989
  // too.
  std::string log;
  const double flop = 57.9182e9;
  for (int step = 1; step <= 30; ++step) {
    const double tps = 5000 + 61 * step, rate = tps * flop;
    char tflops[32], mfu[32], whole[32];
    std::snprintf(tflops, sizeof tflops, "%.2f", rate / 1e12);
    std::snprintf(mfu, sizeof mfu, "%.2f", 100 * rate / 989e12);
    std::snprintf(whole, sizeof whole, "%d,%03d", static_cast<int>(tps) / 1000, static_cast<int>(tps) % 1000);
    log += torchtitan_line(step * 10, whole, tflops, mfu);
  }
  for (const char* gpu : {"H200", "H100 SXM", "NVIDIA H200", "GH200 96GB"}) {
    const RunRecord record = read_text(log, "gpus=8,gpu=" + std::string(gpu));
    const Audit found = audit(record);
    EXPECT_FALSE(found.contradicts) << gpu << "\n" << contradictions(record);
    EXPECT_TRUE(found.readings.front().changes.empty()) << gpu;
  }
  // Against a peak that is none of H200's roundings it still contradicts.
  EXPECT_TRUE(audit(read_text(log, "gpus=8,gpu=B200")).contradicts);
}

TEST(HonestLogsSpec, KempnerForgesLogHoldsWithoutTheLineOfItsPeak) {
  std::ifstream file(tests::source_dir() + "/golden/logs/kempnerforge_13b_8_gpus.log");
  std::string log;
  for (std::string line; std::getline(file, line);)
    if (line.find("Detected GPU") == std::string::npos) log += line + "\n";
  ASSERT_GT(log.size(), 1000u);
  for (const char* set : {"", "gpu=H200", "gpu=NVIDIA H200"}) {
    const RunRecord record = read_text(log, set);
    EXPECT_TRUE(consistent(record)) << set << "\n" << contradictions(record);
  }
}

TEST(HonestLogsSpec, EveryPeakOfTrainersTablesIsARoundingOfTheDataSheets) {
  // pytorch/torchtitan@0258167 torchtitan/tools/utils.py, KempnerInstitute/KempnerForge@0549d2b
  // metrics/mfu.py, karpathy/llm.c@00247dc llmc/mfu.h; the entries that are of the GPU they name.
  struct Row {
    const char* gpu;
    double written;
  };
  for (const Row& row : {Row{"A100-SXM4-80GB", 312},
                         {"A100-PCIE-40GB", 312},
                         {"H100 SXM", 989},
                         {"H100 NVL", 835},
                         {"H100 PCIe", 756},
                         {"NVIDIA H200", 989},
                         {"B200", 2250},
                         {"GB200", 2500},
                         {"MI300X", 1300},
                         {"MI325X", 1300},
                         {"L40S", 362},
                         {"H100 SXM", 989.4},
                         {"H200", 989.5},
                         {"H100 SXM", 990},
                         {"MI300X", 1307.4},
                         {"GH200 96GB", 989}}) {
    const Interval written = as_written(*named_gpu(row.gpu).peak(Precision::bf16));
    EXPECT_TRUE(written.holds(row.written * 1e12)) << row.gpu << " " << row.written;
    EXPECT_LT(written.high / written.low, 1.01) << row.gpu;
  }
  // Other peaks are no roundings: the sparse one, that of the PCIe card, fp8's.
  const Interval h100 = as_written(*named_gpu("H100 SXM").peak(Precision::bf16));
  for (const double other : {1979e12, 835e12, 756e12, 988e12, 991e12}) EXPECT_FALSE(h100.holds(other));
}

/// Steps first, first + 10 .. last as torchtitan prints them; `shift` makes other numbers of the same step.
std::string torchtitan_steps(int first, int last, double shift) {
  std::string log;
  for (int step = first; step <= last; step += 10) {
    char line[256];
    std::snprintf(line, sizeof line,
                  "[titan] 2025-10-16 10:00:00,000 - root - INFO - step: %2d  loss: %7.4f  grad_norm: %7.4f  "
                  "memory: 60.10GiB(75.90%%)  tps: 7,%03d  tflops: 406.07  mfu: 41.06%%\n",
                  step, 6 - 0.004 * step + shift, 1.25 + shift, 100 + static_cast<int>(1000 * shift));
    log += line;
  }
  return log;
}

std::string megatron_steps(int first, int last, double shift) {
  std::string log;
  for (int step = first; step <= last; step += 10) {
    char line[512];
    std::snprintf(
        line, sizeof line,
        " [2024-04-06 02:59:36] iteration %8d/     500 | consumed samples: %12d | elapsed time per "
        "iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 3.000000E-04 "
        "| global batch size:   256 | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of "
        "skipped iterations:   0 | number of nan iterations:   0 |\n",
        step, 256 * step, 2000 + 10 * shift, 6 - 0.004 * step + shift, 1.25 + shift);
    log += line;
  }
  return log;
}

TEST(HonestLogsSpec, AStepDoneAgainAfterARestartIsARestart) {
  // Logged every 10, stopped after 100, gone on from the checkpoint of 90: the next line is 100 again.
  for (const auto& log : {torchtitan_steps(10, 100, 0) + torchtitan_steps(100, 200, 0.003),
                          megatron_steps(10, 100, 0) + megatron_steps(100, 200, 0.003)}) {
    const RunRecord record = read_text(log);
    ASSERT_EQ(record.steps.size(), 21u);
    EXPECT_TRUE(consistent(record)) << contradictions(record);
    EXPECT_EQ(judge("steps", record).note, "1 restart from an earlier step");
    EXPECT_EQ(judge("resume", record).verdict, Verdict::holds);
  }
  // Also as the last line of a log that was cut there.
  EXPECT_TRUE(consistent(read_text(torchtitan_steps(10, 100, 0) + torchtitan_steps(100, 100, 0.003))));
}

TEST(HonestLogsSpec, CopiesAreStillCopies) {
  // The same numbers twice: a line was copied. Every step twice with other numbers: two runs in one file.
  const RunRecord copied = read_text(torchtitan_steps(10, 100, 0) + torchtitan_steps(100, 200, 0));
  EXPECT_EQ(judge("steps", copied).causes.at(0).id, "step_doubled");
  std::string both;
  for (int step = 10; step <= 100; step += 10)
    both += torchtitan_steps(step, step, 0) + torchtitan_steps(step, step, 0.003);
  EXPECT_EQ(judge("steps", read_text(both)).causes.at(0).id, "step_doubled");
}

std::string trainer_state(double first_loss, const std::string& flops = "") {
  std::string out = "{\n  \"global_step\": 20,\n  \"log_history\": [";
  for (int step = 1; step <= 20; ++step)
    out += std::string(step > 1 ? "," : "") +
           "\n    {\"epoch\": 0.1, \"grad_norm\": 1.5, \"learning_rate\": 2e-05, " +
           "\"loss\": " + std::to_string(first_loss - 0.01 * (step - 1)).substr(0, 6) +
           ", \"step\": " + std::to_string(step) + "}";
  return out + "\n  ],\n  \"logging_steps\": 1,\n  \"max_steps\": 20,\n" + flops +
         "  \"train_batch_size\": 4\n}\n";
}

TEST(HonestLogsSpec, FineTuningIsNoContradiction) {
  const RunRecord tuned = read_text(trainer_state(1.48), "model=llama3-8b");
  EXPECT_TRUE(consistent(tuned)) << contradictions(tuned);
  const Result first = judge("first_loss", tuned);
  EXPECT_EQ(first.verdict, Verdict::cannot_be_judged);
  EXPECT_NE(first.note.find("fine-tuning"), std::string::npos) << first.note;
  // Above log V nothing excuses it, nor below where the log says that its weights are new.
  EXPECT_FALSE(consistent(read_text(trainer_state(23.5), "model=llama3-8b")));
  RunRecord fresh = tuned;
  fresh.weights = "new";
  EXPECT_EQ(judge("first_loss", fresh).verdict, Verdict::contradicts);
  const std::string nanogpt =
      "Initializing a new model from scratch\nnumber of parameters: 123.59M\niter 0: loss 1.4800, time "
      "100.00ms, mfu -100.00%\niter 1: loss 1.4700, time 100.00ms, mfu -100.00%\n";
  EXPECT_EQ(judge("first_loss", read_text(nanogpt, "vocab=50304")).verdict, Verdict::contradicts);
}

std::vector<std::string> causes_of(const Audit& found, std::string_view id) {
  std::vector<std::string> out;
  for (const Result& result : found.results)
    if (result.id == id)
      for (const Cause& cause : result.causes) out.push_back(cause.id);
  return out;
}

TEST(HonestLogsSpec, AnImpossibleMfuIsBlamedOnWhatTheLogCanTell) {
  // torchtitan on a GPU that its table lacks divides by an A100's 312: 6,529 tokens/s of 57.918 GFLOP.
  const std::string line = torchtitan_line(10, "6,529", "378.15", "121.20");
  const std::string peak =
      "[titan] 2025-10-16 10:00:00,000 - root - INFO - Peak FLOPS used for computing MFU: 3.120e+14\n";
  const std::vector<std::string> other = {"peak_other_gpu"};
  // Records are kept: an audit points to its own.
  const RunRecord named = read_text(line, "gpu=H200,gpus=8"),
                  with_peak = read_text(peak + line, "gpu=H200,gpus=8"), bare = read_text(line),
                  percent = read_text(torchtitan_line(10, "6,529", "378.15", "3823.56"), "gpu=H200,gpus=8");
  EXPECT_EQ(causes_of(audit(named), "mfu_possible"), other);
  EXPECT_EQ(causes_of(audit(with_peak), "mfu_possible"), other);
  // Alone it says nothing of what is wrong; a hundredth that agrees with the rate does.
  EXPECT_EQ(causes_of(audit(bare), "mfu_possible"), std::vector<std::string>{"mfu_impossible"});
  EXPECT_EQ(causes_of(audit(percent), "mfu_possible"), std::vector<std::string>{"mfu_in_percent"});
}

TEST(HonestLogsSpec, TotalFlopsAreSixTimesTokensTimesParametersWithoutEmbedding) {
  // llama3-8b: 8,030,261,248 - 128,256 x 4,096 = 7,504,924,672; 20 steps of 4 x 2 x 8 sequences of 2,048.
  const std::string stated = "model=llama3-8b,gpus=8,accumulation=2,sequence_length=2048";
  const double whole = 6 * 7504924672.0 * 20 * 64 * 2048;
  const auto verdict = [&](double flops) {
    char text[64];
    std::snprintf(text, sizeof text, "  \"total_flos\": %.17g,\n", flops);
    return judge("total_flops", read_text(trainer_state(1.48, text), stated)).verdict;
  };
  EXPECT_EQ(verdict(whole), Verdict::holds);
  EXPECT_EQ(verdict(0.6 * whole), Verdict::holds);   // sequences shorter than T
  EXPECT_EQ(verdict(1.02 * whole), Verdict::holds);  // adapters
  EXPECT_EQ(verdict(8 * whole), Verdict::contradicts);
  EXPECT_EQ(verdict(0), Verdict::cannot_be_judged);  // a model that cannot say
  EXPECT_EQ(judge("total_flops", read_text(trainer_state(1.48), stated)).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::honest_logs_test
