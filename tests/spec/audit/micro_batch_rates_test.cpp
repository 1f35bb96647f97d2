// labels: unit
// Rates of which one side is a micro-batch's and the other a step's, with an MFU that is made of them: as
// KempnerForge prints its lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::audit::micro_batch_rates_test {
namespace {

constexpr double gpus = 8, micro = 2, accumulation = 16, length = 4096, seconds = 21.18,
                 tokens = micro * accumulation * gpus * length;

std::string with_commas(double number) {
  std::string out = std::to_string(std::llround(number));
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

/// Twelve steps of Llama 3 8B on 8 H100, whose tokens/s are `times` what batch and time make, with an MFU of
/// them. `done` says how many tokens the last line counts, if it is there.
RunRecord run(double times, double done = 0) {
  const double per_token =
      flops_per_token(Convention::kempnerforge, find_model("llama3-8b"), static_cast<std::int64_t>(length))
          .flops->to_double();
  std::string log =
      "[rank 0] INFO     DeviceMesh: dims=['dp_shard'], sizes=[8], world_size=8\n"
      "[rank 0] INFO     Training config: JobConfig(model=ModelConfig(dim=4096, n_layers=32, n_heads=32, "
      "n_kv_heads=8, vocab_size=128256, ffn_hidden_dim=14336, max_seq_len=4096, tie_embeddings=False, "
      "model_type='transformer'), train=TrainConfig(batch_size=2, seq_len=4096, max_steps=1000, "
      "grad_accum_steps=16, grad_clip_norm=1.0, mixed_precision='bf16'))\n"
      "[rank 0] INFO     Model: 8,030,261,248 parameters\n"
      "[rank 0] INFO     Detected GPU: NVIDIA H100 80GB HBM3 \xe2\x86\x92 989.5 bf16 TFLOPS\n"
      "[rank 0] INFO     Starting training: step=0, max_steps=1000, batch_size=2, grad_accum=16, "
      "world_size=8\n";
  for (int step = 1; step <= 12; ++step) {
    const double time = seconds + 0.01 * (step % 5), rate = times * tokens / time;
    char line[200];
    std::snprintf(line, sizeof line,
                  "[rank 0] INFO     [step %d] loss=%.4f | lr=3.00e-04 | grad_norm=1.112 | tok/s=%s | "
                  "mfu=%.1f%% | mem=60.1/79GB | step_time=%.2fs\n",
                  step, 11.9 - 0.02 * step, with_commas(rate).c_str(),
                  100 * rate * per_token / (gpus * 989.5e12), time);
    log += line;
  }
  if (done > 0) log += "[rank 0] INFO     Training complete: 12 steps, " + with_commas(done) + " tokens\n";
  std::istringstream in(log);
  return read_log(in, "kempnerforge");
}

/// Of the readings told beside the first as likely, the one of that id; nothing where none is.
const Reading* told(const Audit& audit, const std::string& id) {
  for (const Reading& reading : audit.readings) {
    if (reading.cost > audit.readings.front().cost + 1) break;
    if (reading.changes.size() == 1 && reading.changes.front().id == id) return &reading;
  }
  return nullptr;
}

TEST(MicroBatchRatesSpec, WhatIsMeantToBeReadIsConsistent) {
  EXPECT_TRUE(consistent(run(1, 12 * tokens))) << contradictions(run(1, 12 * tokens));
}

// 2 x 8 x 4,096 = 65,536 tokens over a step of 21.2 s are 3,094 /s. Either the step has 1,048,576 and the
// rate is 49,508 /s, or one pass was performed and the printed rate is right: nothing tells which.
TEST(MicroBatchRatesSpec, TokensOfAMicroBatchOverTheTimeOfAStep) {
  const Audit audit = spec::audit::audit(run(1 / accumulation));
  ASSERT_TRUE(audit.contradicts);
  const Reading *rate = told(audit, "rate_of_micro_batch"),
                *passes = told(audit, "accumulation_not_performed");
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->changes.front().text,
            "tokens/s is the tokens of one micro-batch over the time of a step, and the MFU is made of it");
  EXPECT_NEAR(rate->corrected.tokens_per_second->middle(), 49'460, 60);
  EXPECT_NEAR(rate->corrected.mfu_exact->middle(), 0.30, 0.02);
  ASSERT_TRUE(passes);
  EXPECT_NEAR(passes->corrected.tokens_per_second->middle(), 49'460 / accumulation, 5);
}

// What is counted since the start tells the two apart.
TEST(MicroBatchRatesSpec, TheTokensOfTheRunSpeakForOneOfThem) {
  const Audit all = audit(run(1 / accumulation, 12 * tokens)),
              one = audit(run(1 / accumulation, 12 * tokens / accumulation));
  EXPECT_EQ(all.readings.front().changes.front().id, "rate_of_micro_batch");
  EXPECT_FALSE(told(all, "accumulation_not_performed"));
  EXPECT_EQ(one.readings.front().changes.front().id, "accumulation_not_performed");
  EXPECT_FALSE(told(one, "rate_of_micro_batch"));
}

/// A table of 8 GPUs, 2 x 4 sequences of 8,192 tokens on each: tokens/s as configured, and a count since the
/// start that grows by one pass of four. A step takes `seconds`.
Audit one_pass_counted(double time, const std::string& known) {
  std::ostringstream log;
  log << "step,loss,seconds,tokens_per_second,tokens_total\n";
  for (int i = 1; i <= 40; ++i) {
    const double took = time * (1 + 0.01 * std::sin(3.0 * i));
    log << i << "," << 10 - 0.05 * i << "," << took << "," << 524288 / took << "," << 131072 * i << "\n";
  }
  std::istringstream in(log.str());
  ReadOptions options;
  options.set = "gpus=8,sequence_length=8192,sequences=64,micro=2,accumulation=4" + known;
  return spec::audit::audit(read_log(in, "a log", options));
}

// The count may be wrong, or what was done: then the rate is made of passes that never ran.
TEST(MicroBatchRatesSpec, ACountOfOnePassMayBeWhatWasDone) {
  const Audit open = one_pass_counted(9, "");
  EXPECT_TRUE(told(open, "total_of_micro_batches"));
  EXPECT_TRUE(told(open, "accumulation_not_performed"));
  for (const Reading& reading : open.readings)
    EXPECT_NEAR(reading.corrected.tokens_per_second->middle(),
                (reading.changes.front().id == "accumulation_not_performed" ? 131072 : 524288) / 9.0, 800);
  // So fast no H100 is: 524,288 tokens of 8B in 2.25 s.
  const Audit fast = one_pass_counted(2.25, ",model=llama3-8b,gpu=NVIDIA H100 80GB HBM3");
  EXPECT_EQ(fast.readings.front().changes.front().id, "accumulation_not_performed");
  EXPECT_NEAR(fast.readings.front().corrected.tokens_per_second->middle(), 131072 / 2.25, 800);
}

// The reverse: the tokens of a step over the time of one pass, an MFU of 16 x 30 %.
TEST(MicroBatchRatesSpec, TokensOfAStepOverTheTimeOfAMicroBatch) {
  for (const double done : {0.0, 12 * tokens}) {
    const Audit audit = spec::audit::audit(run(accumulation, done));
    ASSERT_TRUE(audit.contradicts);
    const Reading& first = audit.readings.front();
    ASSERT_EQ(first.changes.front().id, "rate_over_micro_batch_time") << first.changes.front().text;
    EXPECT_NEAR(first.corrected.tokens_per_second->middle(), 49'460, 60);
    EXPECT_NEAR(first.corrected.mfu_exact->middle(), 0.30, 0.02);
  }
}

}  // namespace
}  // namespace assay::spec::audit::micro_batch_rates_test
