// labels: unit
// One dimension is printed wrong, count and FLOPs are of the model that ran: one cause tells both, and the
// corrected MFU is of that model.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::shape_other_test {
namespace {

using tests::result_of;

struct Printed8b {
  int dim = 4096, layers = 32, kv_heads = 8, vocab = 128'256, ffn = 14'336;
  std::string parameters = "8,030,261,248";
};

/// Llama 3 8B in KempnerForge on 8 H100: 39,866 tokens/s are 25.9 % by its count.
RunRecord kempnerforge(const Printed8b& p) {
  std::string log =
      "[rank 0] INFO     DeviceMesh: dims=['dp_shard'], sizes=[8], world_size=8\n[rank 0] INFO     Training "
      "config: "
      "JobConfig(model=ModelConfig(dim=" +
      std::to_string(p.dim) + ", n_layers=" + std::to_string(p.layers) +
      ", n_heads=32, n_kv_heads=" + std::to_string(p.kv_heads) + ", vocab_size=" + std::to_string(p.vocab) +
      ", ffn_dim_multiplier=1.3, ffn_hidden_dim=" + std::to_string(p.ffn) +
      ", norm_type=<NormType.rmsnorm: 'rmsnorm'>, norm_eps=1e-05, activation=<Activation.silu: 'silu'>, "
      "max_seq_len=4096, "
      "tie_embeddings=False, qk_norm=False, num_experts=0), train=TrainConfig(batch_size=2, seq_len=4096, "
      "max_steps=100, "
      "grad_accum_steps=4, mixed_precision='bf16'))\n[rank 0] INFO     Model: " +
      p.parameters +
      " parameters\n[rank 0] INFO     Detected GPU: NVIDIA H100 80GB HBM3 \xe2\x86\x92 989.0 bf16 TFLOPS\n";
  for (int step = 1; step <= 12; ++step)
    log += "[rank 0] INFO     [step " + std::to_string(step) +
           "] loss=11.7400 | lr=3.00e-05 | grad_norm=1.097 | tok/s=39,866 | mfu=25.9% | mem=60.2/80GB | "
           "step_time=6.58s\n";
  return tests::read_text(log);
}

/// The same model in torchtitan, 57.8 GFLOP a token: 728 tokens/s are 42.2 TFLOP/s.
RunRecord torchtitan(const Printed8b& p) {
  std::string log =
      "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] - Building llama3 8B with "
      "TransformerModelArgs(dim=" +
      std::to_string(p.dim) + ", n_layers=" + std::to_string(p.layers) +
      ", n_heads=32, n_kv_heads=" + std::to_string(p.kv_heads) + ", vocab_size=" + std::to_string(p.vocab) +
      ", multiple_of=1024, ffn_dim_multiplier=1.3, norm_eps=1e-05, max_seq_len=8192)\n[titan] - CUDA "
      "capacity: NVIDIA H100 "
      "80GB HBM3 with 79.10GiB memory\n[titan] - Model llama3 8B size: " +
      p.parameters +
      " total parameters\n[titan] - Peak FLOPS used for computing MFU: 9.890e+14\n[titan] - Trainer is "
      "initialized with "
      "local batch size 1, global batch size 8, gradient accumulation steps 1, sequence length 8192, total "
      "steps 200 "
      "(warmup 200)\n";
  for (int step = 1; step <= 4; ++step)
    log += "[titan] - step:  " + std::to_string(step) +
           "  loss: 11.9000  grad_norm:  3.1000  memory: 48.25GiB(61.00%)  tps: 728  tflops: 42.16  mfu: "
           "4.26%\n";
  return tests::read_text(log);
}

void expect_told(const RunRecord& record, const RunRecord& truthful, const std::string& text) {
  const Audit told = audit(record), honest = audit(truthful);
  ASSERT_FALSE(honest.contradicts);
  EXPECT_EQ(result_of(told, "parameters").verdict, Verdict::contradicts) << text;
  EXPECT_EQ(result_of(told, "mfu").verdict, Verdict::contradicts) << text;
  const Reading& first = told.readings.front();
  ASSERT_EQ(first.changes.size(), 1u) << text;
  EXPECT_EQ(first.changes.front().id, "shape_other") << text;
  std::string texts = first.changes.front().text;
  for (const std::string& other : first.changes.front().alternatives) texts += "; " + other;
  EXPECT_NE(texts.find(text), std::string::npos) << texts;
  ASSERT_TRUE(first.corrected.mfu_exact && honest.readings.front().corrected.mfu_exact) << text;
  EXPECT_NEAR(first.corrected.mfu_exact->middle(), honest.readings.front().corrected.mfu_exact->middle(),
              1e-9)
      << text;
}

TEST(ShapeOtherSpec, OneCauseTellsCountAndFlops) {
  const RunRecord kempner = kempnerforge({}), titan = torchtitan({});
  expect_told(kempnerforge({.layers = 24}), kempner, "has 32 layers, not 24");
  expect_told(kempnerforge({.kv_heads = 16}), kempner, "has 8 heads of keys and values, not 16");
  expect_told(kempnerforge({.ffn = 10'240}), kempner, "has 14,336 entries of the MLP, not 10,240");
  expect_told(kempnerforge({.vocab = 100'352}), kempner, "has 128,256 words, not 100,352");
  expect_told(kempnerforge({.dim = 5120}), kempner, "has 4,096 entries of the residual stream, not 5,120");
  expect_told(torchtitan({.layers = 36}), titan, "has 32 layers, not 36");
  expect_told(torchtitan({.layers = 31}), titan, "has 32 layers, not 31");
  expect_told(torchtitan({.kv_heads = 32}), titan, "has 8 heads of keys and values, not 32");
  // Its arguments make another width of the MLP too.
  expect_told(torchtitan({.dim = 5120}), titan, "is kempnerforge-7b or llama3-8b or llama3.1-8b");
}

/// torchtitan may take the vocabulary from its tokenizer: that one is printed otherwise proves nothing.
TEST(ShapeOtherSpec, TheTokenizersVocabularyIsNoLie) {
  Printed8b of_tokenizer;
  of_tokenizer.parameters = "7,241,732,096";  // of 32,000 entries: 2 x 96,256 x 4,096 fewer
  EXPECT_NE(judge("parameters", torchtitan(of_tokenizer)).verdict, Verdict::contradicts);
}

/// palm_total counts 6 FLOPs a parameter: of the shape's, not of a count that leaves the embedding out.
TEST(ShapeOtherSpec, AWrongCountIsNoneToCorrectBy) {
  Printed8b without_embedding;
  without_embedding.parameters = "7,504,924,672";
  const RunRecord told = torchtitan(without_embedding), right = torchtitan({});
  const Audit audited = audit(told), honest = audit(right);
  ASSERT_FALSE(audited.readings.front().changes.empty());
  EXPECT_EQ(audited.readings.front().changes.front().id, "embedding_not_counted");
  const auto &corrected = audited.readings.front().corrected.mfu_palm_total,
             &expected = honest.readings.front().corrected.mfu_palm_total;
  ASSERT_TRUE(corrected && expected);
  EXPECT_NEAR(corrected->middle(), expected->middle(), 1e-9);
}

/// A count that is wrong by itself leaves the FLOPs with the shape.
TEST(ShapeOtherSpec, FlopsThatGoWithTheShapeKeepIt) {
  Printed8b of_more_layers;
  of_more_layers.parameters = "8,902,709,248";  // of 36 layers
  const Audit told = audit(kempnerforge(of_more_layers));
  EXPECT_EQ(result_of(told, "mfu").verdict, Verdict::holds);
  EXPECT_EQ(result_of(told, "parameters").verdict, Verdict::contradicts);
  for (const Change& change : told.readings.front().changes) EXPECT_NE(change.id, "shape_other");
}

}  // namespace
}  // namespace assay::spec::audit::shape_other_test
