// labels: unit
// Counts of parameters beside a shape that the trainer prints whole: Llama's in KempnerForge and torchtitan,
// GPT-2's in llm.c. Megatron-LM's: whole_shape_megatron_test.cpp.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/whole_shape.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::whole_shape_test {
namespace {

using tests::read_text;
using tests::result_of;

/// KempnerForge on 8 H200: 17,920 = 256 x 70 is the width that a multiplier of 1.3 makes of 5,120.
RunRecord kempnerforge(const std::string& parameters, const std::string& mfu,
                       const std::string& more = "num_experts=0", const std::string& mesh = "'tp'") {
  std::string log =
      "[rank 0] INFO     DeviceMesh: dims=['dp_shard', " + mesh + "], sizes=[2, 4], world_size=8\n" +
      "[rank 0] INFO     Training config: JobConfig(model=ModelConfig(dim=5120, n_layers=40, n_heads=40, "
      "n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.3, ffn_hidden_dim=None, "
      "norm_type=<NormType.rmsnorm: 'rmsnorm'>, activation=<Activation.silu: 'silu'>, max_seq_len=4096, "
      "tie_embeddings=False, qk_norm=False, " +
      more +
      "), train=TrainConfig(batch_size=4, seq_len=4096, max_steps=30, grad_accum_steps=4, "
      "mixed_precision='bf16'))\n[rank 0] INFO     Model: " +
      parameters +
      " parameters\n[rank 0] INFO     Detected GPU: NVIDIA H200 \xe2\x86\x92 989.0 bf16 TFLOPS\n";
  for (int step = 1; step <= 8; ++step)
    log += "[rank 0] INFO     [step " + std::to_string(step) +
           "] loss=11.7500 | lr=3.00e-04 | grad_norm=0.112 | tok/s=29,800 | mfu=" + mfu +
           "% | mem=45.0/140GB | step_time=4.40s\n";
  return read_text(log);
}

TEST(WholeShapeSpec, KempnerForgesConfigurationMakesOneCount) {
  EXPECT_EQ(judge("parameters", kempnerforge("14,840,386,560", "35.8")).verdict, Verdict::holds);
  for (const char* lie : {"14,840,386,561", "13,015,864,320", "9,999,999,999"}) {
    const Audit audit = spec::audit::audit(kempnerforge(lie, "35.8"));
    const Result& result = result_of(audit, "parameters");
    EXPECT_EQ(result.verdict, Verdict::contradicts) << lie;
    EXPECT_EQ(result.recomputed.low, 14840386560) << lie;
    EXPECT_EQ(result_of(audit, "mfu").verdict, Verdict::holds) << lie;
  }
}

TEST(WholeShapeSpec, AnotherCountDoesNotHideTheSparsePeak) {
  const Audit audit = spec::audit::audit(kempnerforge("13,015,864,320", "17.9"));
  EXPECT_EQ(result_of(audit, "parameters").verdict, Verdict::contradicts);
  EXPECT_EQ(result_of(audit, "mfu").verdict, Verdict::contradicts);
}

TEST(WholeShapeSpec, AShapeWithAPartThatIsNotKnownIsNotHeldSo) {
  // Experts, and a stage of a pipeline.
  const RunRecord experts = kempnerforge("46,015,864,320", "35.8", "num_experts=8, moe_top_k=2"),
                  stage = kempnerforge("7,420,193,280", "35.8", "num_experts=0", "'pp'");
  EXPECT_EQ(judge("parameters", experts).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("parameters", stage).verdict, Verdict::cannot_be_judged);
  // Nor where the experts are known in number and width: layers that the log leaves open may be dense.
  RunRecord dense = kempnerforge("14,840,386,560", "35.8");
  ASSERT_TRUE(shape_whole(dense));
  dense.mlp->experts = Experts{.count = 8, .active = 2, .width = 17920};
  EXPECT_FALSE(shape_whole(dense));
}

/// Of the likeliest reading; without a name where it has none.
Change cause_of(const Audit& audit) {
  const auto& changes = audit.readings.front().changes;
  return changes.empty() ? Change{} : changes.front();
}

TEST(WholeShapeSpec, TheFlopsSayWhetherCountOrShapeIsWrong) {
  // No slip of counting makes either number: the MFU of the shape's FLOPs is 35.8 %, of the count's 22.9 %.
  const Audit count = spec::audit::audit(kempnerforge("9,123,456,789", "35.8")),
              shape = spec::audit::audit(kempnerforge("9,123,456,789", "22.9")),
              either = spec::audit::audit(kempnerforge("14,840,386,561", "35.8"));
  EXPECT_EQ(cause_of(count).id, "parameters_miscounted") << cause_of(count).text;
  EXPECT_TRUE(count.readings.front().corrected.mfu_exact.has_value());
  EXPECT_EQ(cause_of(shape).id, "shape_not_that_ran") << cause_of(shape).text;
  EXPECT_EQ(shape.readings.front().changes.size(), 1u);
  EXPECT_FALSE(shape.readings.front().corrected.mfu_exact.has_value());
  EXPECT_EQ(cause_of(either).id, "count_or_shape");
  EXPECT_NE(cause_of(either).text.find("or another model ran"), std::string::npos) << cause_of(either).text;
}

TEST(WholeShapeSpec, AConfigurationThatNamesNoExpertsHasNone) {
  EXPECT_EQ(judge("parameters", kempnerforge("14,840,386,560", "35.8", "model_type='transformer'")).verdict,
            Verdict::holds);
  EXPECT_EQ(judge("parameters", kempnerforge("9,123,456,789", "35.8", "model_type='transformer'")).verdict,
            Verdict::contradicts);
  EXPECT_EQ(judge("parameters", kempnerforge("9,123,456,789", "35.8", "moe_top_k=2")).verdict,
            Verdict::cannot_be_judged);
}

/// torchtitan's Llama 3 8B on 8 H100, 57.8 GFLOP a token: 728 tokens/s are 42.2 TFLOP/s.
RunRecord torchtitan(const std::string& parameters, const std::string& other = "", bool rates = true,
                     const std::string& arguments = "multiple_of=1024, ffn_dim_multiplier=1.3, ",
                     const std::string& flops = "42.16", const std::string& mfu = "4.26") {
  std::string log =
      "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] - Building llama3 8B with "
      "TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, " +
      arguments + "norm_eps=1e-05, " + other +
      "max_seq_len=8192)\n[titan] - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
      "[titan] - Model llama3 8B size: " +
      parameters +
      " total parameters\n[titan] - Peak FLOPS used for computing MFU: 9.890e+14\n"
      "[titan] - Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation "
      "steps 1, sequence length 8192, total steps 200 (warmup 200)\n";
  for (int step = 1; step <= 4; ++step)
    log += "[titan] - step:  " + std::to_string(step) +
           "  loss: 11.9000  grad_norm:  3.1000  memory: 48.25GiB(61.00%)  tps: 728" +
           (rates ? "  tflops: " + flops + "  mfu: " + mfu + "%\n" : "\n");
  return read_text(log);
}

TEST(WholeShapeSpec, TorchtitansArgumentsMakeOneCount) {
  EXPECT_EQ(judge("parameters", torchtitan("8,030,261,248")).verdict, Verdict::holds);
  const Audit told = spec::audit::audit(torchtitan("8,993,892,597"));
  EXPECT_EQ(result_of(told, "parameters").verdict, Verdict::contradicts);
  EXPECT_EQ(result_of(told, "parameters").recomputed.low, 8030261248);
  EXPECT_EQ(result_of(told, "flops_rate").verdict, Verdict::holds);
  EXPECT_EQ(result_of(told, "mfu").verdict, Verdict::holds);
  EXPECT_EQ(cause_of(told).id, "parameters_miscounted") << cause_of(told).text;
  // Without FLOP/s either may be wrong.
  EXPECT_EQ(cause_of(spec::audit::audit(torchtitan("8,993,892,597", "", false))).id, "count_or_shape");
  // Arguments that make another inner width than that of the known model which has the count: no accusation.
  EXPECT_NE(
      judge("parameters", torchtitan("8,030,261,248", "", true, "multiple_of=256, ffn_dim_multiplier=None, "))
          .verdict,
      Verdict::contradicts);
  // 151,936 entries of a tokenizer; experts; a width that no argument makes.
  EXPECT_EQ(judge("parameters", torchtitan("8,224,247,808")).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("parameters", torchtitan("8,993,892,597", "moe_enabled=True, ")).verdict,
            Verdict::cannot_be_judged);
  EXPECT_EQ(judge("parameters", torchtitan("8,993,892,597", "", true, "")).verdict,
            Verdict::cannot_be_judged);
}

/// 2 x 4,096 x (128,256 - 32,000) = 788,529,152 parameters fewer, and 6 x 4,096 x 96,256 = 2.3656 GFLOP of
/// 57.9 a token: 728 tokens/s are 40.44 TFLOP/s.
TEST(WholeShapeSpec, TheTokenizersVocabularyIsThatOfCountAndFlops) {
  const auto small = [](const std::string& flops, const std::string& mfu) {
    return torchtitan("7,241,732,096", "", true, "multiple_of=1024, ffn_dim_multiplier=1.3, ", flops, mfu);
  };
  const Audit audit = spec::audit::audit(small("40.44", "4.09"));
  EXPECT_EQ(result_of(audit, "flops_rate").verdict, Verdict::holds);
  EXPECT_EQ(result_of(audit, "mfu").verdict, Verdict::holds);
  EXPECT_EQ(result_of(audit, "parameters").verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(result_of(audit, "parameters").note, "the vocabulary that ran");
  // Those of the printed vocabulary are another model's: 42.16, and 38.72 of the count without its table.
  for (const char* other : {"42.16", "38.72", "20.22"})
    EXPECT_EQ(result_of(spec::audit::audit(small(other, "4.09")), "flops_rate").verdict, Verdict::contradicts)
        << other;
  const Audit half = spec::audit::audit(small("20.22", "2.04"));
  EXPECT_EQ(result_of(half, "mfu").verdict, Verdict::contradicts);
}

/// A trainer that makes its FLOPs of the count that it prints makes one mistake, not two.
TEST(WholeShapeSpec, FlopsThatAreMadeOfAWrongCountAreNoSecondMistake) {
  const std::string arguments = "multiple_of=1024, ffn_dim_multiplier=1.3, ";
  // 6 x (70.554e9 - 0.525e9) + 12.885e9 FLOPs a token; of a count without the head.
  const Audit other =
                  spec::audit::audit(torchtitan("70,553,706,496", "", true, arguments, "315.26", "31.88")),
              head = spec::audit::audit(torchtitan("7,504,924,672", "", true, arguments, "39.87", "4.03"));
  for (const Audit* one : {&other, &head}) {
    EXPECT_EQ(one->readings.front().changes.size(), 1u);
    EXPECT_TRUE(one->readings.front().corrected.mfu_exact.has_value());
    for (const char* id : {"parameters", "flops_rate", "mfu"})
      EXPECT_EQ(result_of(*one, id).verdict, Verdict::contradicts) << id;
    EXPECT_NE(cause_of(*one).text.find("are made of that count"), std::string::npos) << cause_of(*one).text;
  }
  EXPECT_EQ(cause_of(other).id, "parameters_of_other_model");
  // FLOP/s of the shape beside the wrong count are right.
  const Audit count = spec::audit::audit(torchtitan("7,504,924,672"));
  EXPECT_EQ(result_of(count, "flops_rate").verdict, Verdict::holds);
  EXPECT_EQ(cause_of(count).text.find("are made of that count"), std::string::npos);
}

/// 32 layers x 2 x 4,096 x (4,096 - 1,024) parameters more are those of 98,304 entries more, and a layer's
/// those of 26,625: no tokenizer has such a vocabulary.
TEST(WholeShapeSpec, AnotherDimensionIsNotAVocabulary) {
  for (const char* count : {"8,835,567,616", "7,812,149,248", "7,594,037,248"})
    EXPECT_EQ(judge("parameters", torchtitan(count)).verdict, Verdict::contradicts) << count;
  // 151,936 and 32,000 entries are known ones.
  for (const char* count : {"8,224,247,808", "7,241,732,096"})
    EXPECT_EQ(judge("parameters", torchtitan(count)).verdict, Verdict::cannot_be_judged) << count;
}

/// llm.c's table. GPT-2: 124,439,808 of 50,257 entries, 124,475,904 of the 50,304 that it pads them to.
RunRecord llmc(const std::string& parameters, int layers = 12, int heads = 12, int width = 768,
               const std::string& vocab = "50257") {
  const auto row = [](const std::string& name, const std::string& value) {
    return "| " + name + " | " + value + " |\n";
  };
  std::string log =
      row("micro batch size B   ", "64") + row("sequence length T    ", "1024") +
      row("vocab_size V         ", vocab) + row("num_layers L         ", std::to_string(layers)) +
      row("num_heads NH         ", std::to_string(heads)) +
      row("channels C           ", std::to_string(width)) + row("num_parameters       ", parameters);
  for (int step = 1; step <= 4; ++step)
    log += "step    " + std::to_string(step) +
           "/100 | loss 3.500000 (+nanz)| norm 15.3000 (+nanz)| lr 8.57e-07 | 359.74 ms | 46.9% bf16 MFU | "
           "1457400 tok/s\n";
  return read_text(log);
}

TEST(WholeShapeSpec, LlmcsTableMakesOneCountOfEachTableOfPositions) {
  // 6 x (12 x 384^2 + 13 x 384) + 2 x 384 + 50,304 x 384 = 29,964,288 and 1,024 x 384 or 2,048 x 384.
  EXPECT_EQ(judge("parameters", llmc("124475904")).verdict, Verdict::holds);
  EXPECT_EQ(judge("parameters", llmc("125262336")).verdict, Verdict::holds);
  EXPECT_EQ(judge("parameters", llmc("30357504", 6, 6, 384)).verdict, Verdict::holds);
  for (const char* lie : {"774030080", "124475905", "124475903"})
    EXPECT_EQ(judge("parameters", llmc(lie)).verdict, Verdict::contradicts) << lie;
  EXPECT_EQ(judge("parameters", llmc("30357505", 6, 6, 384)).verdict, Verdict::contradicts);
  // Of another vocabulary, a fork: its blocks are not known to be GPT-2's.
  EXPECT_EQ(judge("parameters", llmc("774030080", 12, 12, 768, "128256")).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::whole_shape_test
