// labels: unit
// What headers say of the model beside its shape: whether its head is its embedding, a name and a count, and
// whether its weights are new.
#include <gtest/gtest.h>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::said_of_models_test {
namespace {

using tests::read_text;

/// KempnerForge's header of Llama 3 8B's shape, and three of its lines.
RunRecord kempnerforge(const std::string& tied, const std::string& parameters) {
  std::string log =
      "[rank 0] INFO     DeviceMesh: dims=['dp_shard'], sizes=[8], world_size=8\n"
      "[rank 0] INFO     Training config: JobConfig(model=ModelConfig(dim=4096, n_layers=32, n_heads=32, "
      "n_kv_heads=8, vocab_size=128256, ffn_hidden_dim=14336, max_seq_len=4096, tie_embeddings=" +
      tied +
      ", model_type='transformer'), train=TrainConfig(batch_size=2, seq_len=4096, max_steps=1000, "
      "grad_accum_steps=16))\n[rank 0] INFO     Model: " +
      parameters + " parameters\n";
  for (int step = 1; step <= 3; ++step)
    log += "[rank 0] INFO     [step " + std::to_string(step) +
           "] loss=11.9000 | lr=3.00e-04 | grad_norm=1.112 | tok/s=49,508 | mfu=30.1% | mem=60.1/79GB | "
           "step_time=21.18s\n";
  return read_text(log);
}

// One table of 128,256 x 4,096 less: 8,030,261,248 - 525,336,576.
TEST(SaidOfModelsSpec, AHeadThatIsTheEmbeddingIsCountedOnce) {
  EXPECT_EQ(judge("parameters", kempnerforge("False", "8,030,261,248")).verdict, Verdict::holds);
  EXPECT_EQ(judge("parameters", kempnerforge("True", "7,504,924,672")).verdict, Verdict::holds);
  for (const auto& [tied, count, id] : {std::array{"True", "8,030,261,248", "head_counted_twice"},
                                        std::array{"False", "7,504,924,672", "embedding_not_counted"}}) {
    const RunRecord record = kempnerforge(tied, count);
    EXPECT_EQ(judge("parameters", record).verdict, Verdict::contradicts) << tied;
    const Audit audit = spec::audit::audit(record);
    ASSERT_FALSE(audit.readings.front().changes.empty()) << tied;
    EXPECT_EQ(audit.readings.front().changes.front().id, id) << audit.readings.front().changes.front().text;
  }
}

/// llm.c's table and lines; `init` behind "weight init method", `loss` the first one.
RunRecord llmc(const std::string& init, const std::string& loss) {
  const auto row = [](const std::string& name, const std::string& value) {
    return "| " + name + " | " + value + " |\n";
  };
  std::string log = row("micro batch size B   ", "16") + row("sequence length T    ", "1024") +
                    row("weight init method   ", init) + row("max_sequence_length T", "1024") +
                    row("vocab_size V         ", "50257") + row("num_layers L         ", "12") +
                    row("num_heads NH         ", "12") + row("channels C           ", "768") +
                    row("num_parameters       ", "124475904");
  for (int step = 1; step <= 4; ++step)
    log += "step    " + std::to_string(step) + "/100 | loss " + (step == 1 ? loss : "3.500000") +
           " (+nanz)| norm 15.3000 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU | 171545 tok/s\n";
  return read_text(log);
}

TEST(SaidOfModelsSpec, LlmcsDescriptionOfAModelIsNewWeights) {
  for (const char* init : {"random", "d12", "gpt2:d12", "gpt3:c768"}) {
    EXPECT_EQ(llmc(init, "11.000000").weights, "new") << init;
    EXPECT_EQ(judge("first_loss", llmc(init, "11.000000")).verdict, Verdict::holds) << init;
    EXPECT_EQ(judge("first_loss", llmc(init, "3.600000")).verdict, Verdict::contradicts) << init;
  }
  for (const char* init : {"gpt2_124M_bf16.bin", "d12.bin", "intermediate checkpoint", "d", "dump/d12"}) {
    EXPECT_EQ(llmc(init, "3.600000").weights, "") << init;
    EXPECT_NE(judge("first_loss", llmc(init, "3.600000")).verdict, Verdict::contradicts) << init;
  }
}

/// torchtitan names a model and counts its parameters.
RunRecord torchtitan(const std::string& name, const std::string& count) {
  std::string log = "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] - Model " + name +
                    " size: " + count + " total parameters\n";
  for (int step = 1; step <= 3; ++step)
    log += "[titan] - step:  " + std::to_string(step) +
           "  loss: 10.0000  grad_norm:  3.1000  memory: 42.00GiB(53.10%)  tps: 6,302\n";
  return read_text(log);
}

TEST(SaidOfModelsSpec, ANameThatItsCountDoesNotFitIsSaid) {
  EXPECT_EQ(judge("parameters", torchtitan("llama3 8B", "8,030,261,248")).verdict, Verdict::holds);
  // Its vocabulary is the tokenizer's in some versions: the model may be called so and be another.
  const Result other = judge("parameters", torchtitan("llama3 8B", "7,241,748,480"));
  EXPECT_EQ(other.verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(other.note, "a model of that count: llama3-8b, as it is called, has 8,030,261,248");
  EXPECT_EQ(judge("parameters", torchtitan("mine 8B", "7,241,748,480")).note, "model");
}

/// A count that KempnerForge's 7B, Llama 3 8B and Llama 3.1 8B share: another trainer's log is not of the
/// first.
TEST(SaidOfModelsSpec, AModelOfAnotherTrainersOwnIsNotNamedWhereOthersAreAlike) {
  const RunRecord megatron = read_text(
      "Total number of parameters in billions: 8.03\n"
      " iteration        1/       2 | consumed samples:          128 | elapsed time per iteration (ms): "
      "20289.1 | "
      "learning rate: 3.000000E-05 | global batch size:   128 | lm loss: 1.258695E+01 | loss scale: 1.0 | "
      "grad "
      "norm: 10.275 | number of skipped iterations:   0 | number of nan iterations:   0 |\n");
  EXPECT_EQ(spec::audit::audit(megatron).model, "llama3-8b");
}

/// torchtitan's 7,022 tokens/s at 406.65 TFLOP/s are Llama 3 8B's 57.9 GFLOPs per token at 8,192.
TEST(SaidOfModelsSpec, DimensionsThatTheUserStatesAreTheModels) {
  const std::string log =
      "[titan] 2025-06-04 08:51:58,557 - root - INFO - step: 10  loss: 10.2069  memory: 30.99GiB(32.62%)  "
      "tps: "
      "7,034  tflops: 407.35  mfu: 41.19%\n"
      "[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  "
      "tps: "
      "7,022  tflops: 406.65  mfu: 41.12%\n";
  const std::string set = "model=llama3-8b,sequence_length=8192,gpus=8,gpu=NVIDIA H100 SXM";
  EXPECT_EQ(judge("flops_rate", read_text(log, set)).verdict, Verdict::holds);
  const RunRecord same = read_text(log, set + ",vocab=128256,layers=32");
  EXPECT_EQ(spec::audit::audit(same).model, "llama3-8b");
  EXPECT_EQ(judge("flops_rate", same).verdict, Verdict::holds);
  for (const char* other :
       {"vocab=32000", "layers=16", "width=2048", "heads=64,head_dim=256", "ffn=8192", "kv_heads=32"}) {
    const RunRecord run = read_text(log, set + "," + other);
    EXPECT_EQ(judge("flops_rate", run).verdict, Verdict::contradicts) << other;
    EXPECT_EQ(spec::audit::audit(run).model, "llama3-8b of stated dimensions") << other;
  }
}

/// GPT-2's attention has as many keys and values as heads; Llama's has fewer, of which the user says how
/// many.
TEST(SaidOfModelsSpec, HeadsThatTheUserStatesHaveKeysAndValuesOfTheirOwnWhereTheModelsHave) {
  const std::string log = "step,loss,mfu\n1,3.2,46.1\n2,2.7,45.8\n";
  const RunRecord run = read_text(log, "model=gpt2,width=1024,heads=16,vocab=65");
  EXPECT_EQ(spec::audit::audit(run).model, "gpt2 of stated dimensions");
  EXPECT_THROW(spec::audit::audit(read_text(log, "model=gpt2,heads=16,kv_heads=12")), UserError);
  EXPECT_THROW(spec::audit::audit(read_text(log, "model=llama3-8b,heads=12")), UserError);
}

}  // namespace
}  // namespace assay::spec::audit::said_of_models_test
