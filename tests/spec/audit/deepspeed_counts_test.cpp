// labels: unit golden
// The FLOP/s of Megatron-DeepSpeed, which counts them in a way of its own.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::deepspeed_counts_test {
namespace {

using tests::read_text;

RunRecord read(const std::string& text, const std::string& settings = "") {
  ReadOptions options;
  options.set = settings;
  std::istringstream in(text);
  return read_log(in, "run.log", options);
}

/// BLOOM's line of 384 GPUs, 2,048 sequences of 2,048 tokens in 105.22 s, `tflops` per GPU.
RunRecord bloom(const std::string& tflops) {
  RunRecord run = read_text(
      " [default7]: iteration    12695/  115311 | consumed samples:      9841584 | consumed tokens:  "
      "20155564032 | "
      "elapsed time per iteration (s): 105.22 | learning rate: 5.969E-05 | global batch size:  2048 | lm "
      "loss: "
      "2.463556E+00 | grad norm: 0.174 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan "
      "iterations:   0 | samples per second: 19.463 | TFLOPs: " +
      tflops + " |\n");
  ModelSpec model = find_model("gpt2");
  model.width = 14336, model.layers = 70, model.heads = model.kv_heads = 112, model.head_dim = 128;
  model.ffn = 4 * 14336, model.context = 2048, model.vocab = 250880;
  run.definition = model;
  run[Setting::gpus] = exactly(384);
  run[Setting::tensor_parallel] = exactly(4);
  run[Setting::pipeline_parallel] = exactly(12);
  run[Setting::sequence_length] = exactly(2048);
  return run;
}

TEST(DeepSpeedCountsSpec, MegatronDeepSpeedsCountIsNoContradiction) {
  // 24 f x 70 x 14,336^2 (1 + 2,048 / 6 x 14,336 + 250,880 / 16 x 70 x 14,336) = f x 358.9 GFLOP per token.
  for (const auto& [tflops, with] :
       std::vector<std::pair<const char*, bool>>{{"149.02", true}, {"111.76", false}}) {
    const Audit one = audit(bloom(tflops));
    EXPECT_FALSE(one.contradicts) << tflops << " " << contradictions(bloom(tflops));
    EXPECT_NE(one.readings.front().interpretation.note.find(with ? "recomputed forward pass too"
                                                                 : "Megatron-DeepSpeed"),
              std::string::npos)
        << one.readings.front().interpretation.note;
  }
  EXPECT_TRUE(audit(bloom("140.02")).contradicts);
}

/// GPT-3 175B: V of 50,257 is 50,304 on one rank of tensor parallelism and 51,200 on eight, which nothing
/// says. 142.612 x 72 x 96 x 12,288^2 (1 + 2,048 / 6 x 12,288 + V / 16 x 96 x 12,288) = 153.372 and 153.379
/// TFLOP/s.
TEST(DeepSpeedCountsSpec, TheVocabularyThatDeepSpeedCountsIsOfAnyRanks) {
  const auto log = [](const char* tflops, const char* options) {
    return read(std::string(" iteration        5/      10 | consumed samples: 7680 | consumed tokens: "
                            "15728640 | elapsed time per iteration (ms): 344656.1 | global batch size:  "
                            "1536 | lm loss: 1.100078E+01 | actual seqlen:  2048 | samples per second: "
                            "4.457 | tokens per gpu per second (tgs): 142.612 | TFLOPs: ") +
                    tflops + " |\n",
                options);
  };
  for (const char* tflops : {"153.372", "153.379"}) {
    const RunRecord run = log(tflops, "gpus=64,model=gpt3-175b");
    EXPECT_EQ(judge("flops_rate", run).verdict, Verdict::holds) << tflops << contradictions(run);
  }
  EXPECT_EQ(judge("flops_rate", log("153.390", "gpus=64,model=gpt3-175b")).verdict, Verdict::contradicts);
}

/// The key/value heads of Megatron-DeepSpeed's arguments make its model whole, whose count is held to it.
TEST(DeepSpeedCountsSpec, MegatronDeepSpeedsArgumentsAreAModel) {
  const auto log = [](const char* tflops) {
    std::string text =
        "using world size: 8, data-parallel-size: 2, tensor-model-parallel size: 2, "
        "pipeline-model-parallel size: 2\n";
    for (const char* argument :
         {"ffn_hidden_size 5504", "global_batch_size 32", "hidden_size 2048", "kv_channels 128",
          "micro_batch_size 4", "num_attention_heads 16", "num_experts [1]", "num_key_value_heads 16",
          "num_layers 24", "padded_vocab_size 32000", "seq_length 2048", "swiglu True",
          "untie_embeddings_and_output_weights True"}) {
      const std::string both = argument;
      const std::size_t blank = both.find(' ');
      text += "  " + both.substr(0, blank) + " ............. " + both.substr(blank + 1) + "\n";
    }
    return read(text +
                "-------------------- end of arguments ---------------------\n iteration     2500/    "
                "2500 | consumed samples:        80000 | elapsed time per iteration (ms): 1206.4 | "
                "global batch size:    32 | lm loss: 1.254951E+01 | actual seqlen:  2048 | samples per "
                "second: 26.526 | TFLOPs: " +
                tflops + " |\n");
  };
  EXPECT_EQ(judge("flops_rate_of_batch", log("59.42")).verdict, Verdict::holds)
      << contradictions(log("59.42"));
  EXPECT_EQ(judge("flops_rate_of_batch", log("61.42")).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::deepspeed_counts_test
