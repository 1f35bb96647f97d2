// labels: unit
// One number of a log that is wrong, a column or a setting, told by the others.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/conventions.hpp"
#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::one_wrong_number_test {
namespace {

using tests::read_text;

/// Llama 3 8B as Megatron-LM prints it on 64 GPUs, TFLOP/s of one GPU times `flops`, samples times `samples`.
RunRecord megatron(double flops, double samples = 1) {
  RunRecord r;
  r.format.name = "megatron";
  r.format.flops_rate = Scope::gpu;
  r.format.convention = "megatron";
  r.model = "llama3-8b";
  r.gpu = "NVIDIA H100 80GB HBM3";
  for (const auto& [setting, number] :
       {std::pair(Setting::gpus, 64.0), std::pair(Setting::data_parallel, 8.0),
        std::pair(Setting::tensor_parallel, 8.0), std::pair(Setting::pipeline_parallel, 1.0),
        std::pair(Setting::sequences, 128.0), std::pair(Setting::micro, 1.0),
        std::pair(Setting::accumulation, 16.0), std::pair(Setting::sequence_length, 4096.0)})
    r[setting] = exactly(number, 1);
  const auto per_token = counted_flops(Evidence(r), "megatron");
  for (int i = 1; i <= 20; ++i) {
    const double seconds = 9 + 0.01 * (i % 3), rate = flops * per_token->middle() * 128 * 4096 / seconds / 64;
    Step step;
    step.line = i;
    step[Field::step] = exactly(5.0 * i, i);
    step[Field::seconds] = Printed{seconds, seconds - 5e-5, seconds + 5e-5, i};
    step[Field::flops_rate] = Printed{rate, rate - 5e10, rate + 5e10, i};
    step[Field::sequences_total] = exactly(640.0 * i * samples, i);
    r.steps.push_back(step);
  }
  r.steps_seen = 20;
  return r;
}

TEST(ImpossibleNumbersSpec, OneDisagreeingColumnIsNotExplainedByTwoMistakes) {
  ASSERT_TRUE(consistent(megatron(1))) << contradictions(megatron(1));
  for (const double factor : {1.5, 2.0, 3.0, 4.0}) {
    const RunRecord record = megatron(factor);
    const Audit one = audit(record);
    ASSERT_TRUE(one.contradicts);
    const Reading& best = one.readings.front();
    ASSERT_EQ(best.changes.size(), 1u) << factor;
    EXPECT_EQ(best.changes[0].text.find("MFU"), std::string::npos) << best.changes[0].text;
    EXPECT_EQ(best.changes[0].text.find("accumulation"), std::string::npos) << best.changes[0].text;
    // Batch and time agree: 128 x 4,096 tokens in 9 s.
    EXPECT_NEAR(best.corrected.tokens_per_second->middle(), 128 * 4096 / 9.01, 150) << factor;
  }
  const RunRecord half = megatron(1, 0.5);
  const Audit samples = audit(half);
  ASSERT_TRUE(samples.contradicts);
  EXPECT_EQ(samples.readings.front().changes.size(), 1u);
}

TEST(ImpossibleNumbersSpec, AWrongNumberOfGpusIsToldByTheAxes) {
  RunRecord r = megatron(1);
  r[Setting::gpus] = exactly(256, 1);
  const Audit one = audit(r);
  ASSERT_TRUE(one.contradicts);
  EXPECT_EQ(one.readings.front().changes.at(0).text, "64 GPUs ran, not 256");
  r.gpu.clear();
  EXPECT_EQ(audit(r).readings.front().changes.at(0).text, "64 ranks ran, not 256");
}

TEST(ImpossibleNumbersSpec, WithoutAConventionAnMfuIsHeldToAllOfThem) {
  const auto log = [](double mfu) {
    std::ostringstream out;
    for (int i = 1; i <= 20; ++i)
      out << R"({"step": )" << i << R"(, "loss": )" << 12 - 0.1 * i << R"(, "tps": )" << 52000 + i
          << R"(, "mfu": )" << mfu << "}\n";
    return read_text(out.str(), "model=llama3-8b,gpus=8,gpu=NVIDIA H100 80GB HBM3,sequence_length=4096",
                     "step=step,loss=loss,tokens_per_second=tps,mfu=mfu");
  };
  EXPECT_TRUE(consistent(log(0.36))) << contradictions(log(0.36));
  EXPECT_TRUE(consistent(log(0.32))) << contradictions(log(0.32));
  const RunRecord sparse = log(0.17);
  const Audit one = audit(sparse);
  ASSERT_TRUE(one.contradicts);
  ASSERT_EQ(one.readings.front().changes.size(), 1u);
  EXPECT_EQ(one.readings.front().changes[0].id, "peak_sparse");
}

TEST(ImpossibleNumbersSpec, NanoGptsCountLeavesOutPositionsAndMayHaveNoBiases) {
  const auto log = [](const std::string& count) {
    return read_text("number of parameters: " + count +
                         "M\niter 0: loss 10.9000, time 100.00ms, mfu -100.00%\n"
                         "iter 10: loss 8.0000, time 100.00ms, mfu 3.00%\n",
                     "model=gpt2");
  };
  // 124,439,808 - 1,024 x 768, with and without 102,144 biases, of 50,257 or 50,304 entries.
  for (const char* count : {"123.65", "123.55", "123.59", "123.69"})
    EXPECT_EQ(judge("parameters", log(count)).verdict, Verdict::holds) << count;
  EXPECT_EQ(judge("parameters", log("120.00")).verdict, Verdict::contradicts);
}

TEST(ImpossibleNumbersSpec, TheRatesOfHuggingFacesSummaryAreHeldToItsTime) {
  const auto log = [](const std::string& steps, const std::string& samples) {
    std::ostringstream out;
    for (int i = 1; i <= 100; ++i)
      out << "{'loss': 1.5, 'grad_norm': 1.2, 'learning_rate': " << (i < 100 ? 2e-7 * (100 - i) : 0.0)
          << ", 'epoch': " << i / 50.0 << "}\n";
    out << "{'train_runtime': 200.0, 'train_samples_per_second': " << samples
        << ", 'train_steps_per_second': " << steps << ", 'train_loss': 1.2, 'epoch': 2.0}\n";
    return read_text(
        out.str(),
        "max_steps=100,sequences=16,schedule=linear,learning_rate=2e-5,warmup_steps=0,learning_rate_min=0");
  };
  EXPECT_TRUE(consistent(log("0.5", "8.0"))) << contradictions(log("0.5", "8.0"));
  EXPECT_EQ(judge("learning_rate", log("0.5", "8.0")).verdict, Verdict::holds);
  EXPECT_EQ(judge("average_steps_rate", log("2.0", "8.0")).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("average_sequences_rate", log("0.5", "64.0")).verdict, Verdict::contradicts);
}

TEST(ImpossibleNumbersSpec, TorchtitansStampsAreAClock) {
  const auto log = [](int tokens_per_second) {
    std::ostringstream out;
    out << "[titan] 2025-11-20 09:13:20,000 - root - INFO - Trainer is initialized with local batch size 1, "
           "global batch "
           "size 8, gradient accumulation steps 1, sequence length 8192, total steps 300 (warmup 20).\n"
           "[titan] 2025-11-20 09:13:20,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], "
           "[8]\n";
    for (int i = 1; i <= 30; ++i)
      out << "[titan] 2025-11-20 09:" << 14 + 10 * i / 60 << ":" << (10 * i % 60 < 10 ? "0" : "")
          << 10 * i % 60 << ",120 - root - INFO - step: " << 10 * i
          << "  loss:  8.0000  grad_norm:  2.1  memory: 42.11GiB(53.23%)  tps: " << tokens_per_second
          << "  tflops: 23.17  mfu: 2.34%\n";
    return read_text(out.str());
  };
  // 10 steps of 8,192 tokens per GPU in 10 s.
  EXPECT_EQ(judge("rate_wall_clock", log(8192)).verdict, Verdict::holds);
  EXPECT_EQ(judge("rate_wall_clock", log(4096)).verdict, Verdict::contradicts);
  // A mean over the very steps that the stamps enclose leaves no room for 2 % more time than they show.
  EXPECT_EQ(judge("rate_wall_clock", log(8032)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::one_wrong_number_test
