// labels: unit
// Counts of parameters beside a shape that the trainer prints whole: Llama 3 8B's in KempnerForge and
// Megatron-LM, GPT-2's in llm.c.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/whole_shape.hpp"
#include "tests/spec/audit/readers/megatron_arguments.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::whole_shape_test {
namespace {

using tests::read_text;

const Result& result_of(const Audit& audit, std::string_view id) {
  for (const Result& result : audit.results)
    if (result.id == id) return result;
  throw std::out_of_range(std::string(id));
}

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
                     const std::string& arguments = "multiple_of=1024, ffn_dim_multiplier=1.3, ") {
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
           (rates ? "  tflops: 42.16  mfu: 4.26%\n" : "\n");
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

/// Megatron-LM's arguments, in the order in which it sorts them, and what it counts of them.
RunRecord megatron(const std::string& total, const std::string& untied = "True", bool gated = true,
                   const std::string& stages = "1") {
  const auto argument = [](const std::string& name, const std::string& value) {
    return "  " + name + " " + std::string(48 - name.size(), '.') + " " + value + "\n";
  };
  std::string log =
      "using world size: 16, data-parallel size: 8, context-parallel size: 1, "
      "tensor-model-parallel size: 2, pipeline-model-parallel size: " +
      stages + "\n------------------------ arguments ------------------------\n" +
      argument("ffn_hidden_size", gated ? "14336" : "16384") + argument("global_batch_size", "128") +
      argument("group_query_attention", "True") + argument("hidden_size", "4096") +
      argument("kv_channels", "128") + argument("micro_batch_size", "1") +
      argument("num_attention_heads", "32") + argument("num_experts", "None") + argument("num_layers", "32") +
      argument("num_query_groups", "8") + argument("padded_vocab_size", "128256") +
      argument("seq_length", "8192") + argument("swiglu", gated ? "True" : "False") +
      argument("train_iters", "1000");
  if (!untied.empty()) log += argument("untie_embeddings_and_output_weights", untied);
  log += argument("world_size", "16") +
         "-------------------- end of arguments ---------------------\n"
         "Total number of parameters in billions: " +
         total + "\n";
  for (int step = 1; step <= 4; ++step)
    log += " [2025-04-06 02:56:0" + std::to_string(step) + "] iteration        " + std::to_string(step) +
           "/    1000 | consumed samples:          " + std::to_string(128 * step) +
           " | elapsed time per iteration (ms): 8158.9 | throughput per GPU (TFLOP/s/GPU): 413.4 | learning "
           "rate: 3.000000E-05 | global batch size:   128 | lm loss: 1.1E+01 | loss scale: 1.0 | grad norm: "
           "1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n";
  return read_text(log);
}

TEST(WholeShapeSpec, MegatronsArgumentsMakeOneCount) {
  EXPECT_EQ(judge("parameters", megatron("8.03")).verdict, Verdict::holds);
  EXPECT_EQ(judge("parameters", megatron("7.50", "False")).verdict, Verdict::holds);
  // 32 x (2 x 4096^2 + 2 x 4096 x 1024 + 2 x 4096 x 16384 + 2 x 4096) + 2 x 128,256 x 4,096
  EXPECT_EQ(judge("parameters", megatron("6.69", "True", false)).verdict, Verdict::holds);
  const Audit audit = spec::audit::audit(megatron("13.02"));
  EXPECT_EQ(result_of(audit, "parameters").verdict, Verdict::contradicts);
  EXPECT_EQ(result_of(audit, "flops_rate_of_batch").verdict, Verdict::holds);
  // Untold whether the head is tied, or one stage's: neither is accused.
  EXPECT_EQ(judge("parameters", megatron("13.02", "")).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("parameters", megatron("4.01", "True", true, "2")).verdict, Verdict::cannot_be_judged);
}

/// What Megatron-LM's first rank counts of 24 layers of 2,048, 16 heads, 8,192 wide, one of the arguments
/// changed: 2 x 50,304 x 2,048 + 24 x (4 x 2,048^2 + 2 x 2,048 x 8,192 + 2 x 2,048) + 2,048 plain.
Result count_of_rank(const std::string& count, megatron_arguments_test::Arguments other = {}) {
  for (const auto& [name, value] :
       {std::pair("position_embedding_type", "rope"), {"untie_embeddings_and_output_weights", "True"}})
    other.emplace(name, value);
  return judge(
      "parameters",
      read_text(megatron_arguments_test::header(other) +
                " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): " + count +
                "\n iteration        1/    1000 | consumed samples:          128 | elapsed time per "
                "iteration (ms): 8158.9 | learning rate: 3.000000E-05 | global batch size:   128 | "
                "lm loss: 1.1E+01 | loss scale: 1.0 | grad norm: 1.0 |\n"));
}

TEST(WholeShapeSpec, MegatronsRankHoldsTheWholeModelWhereNothingCutsIt) {
  EXPECT_EQ(count_of_rank("1414105088").verdict, Verdict::holds);
  // Biases of norms (LayerNorm): 49 x 2,048; of every projection too: 24 x (5 x 2,048 + 8,192) = 442,368
  // more.
  EXPECT_EQ(count_of_rank("1414205440").verdict, Verdict::holds);
  EXPECT_EQ(count_of_rank("1414647808").verdict, Verdict::holds);
  EXPECT_EQ(count_of_rank("1414105089").verdict, Verdict::contradicts);
  EXPECT_EQ(count_of_rank("1555515597").verdict, Verdict::contradicts);
  for (const auto& [name, value] : {std::pair("position_embedding_type", "learned_absolute"),
                                    {"position_embedding_type", ""},
                                    {"expert_model_parallel_size", "2"},
                                    {"decoder_seq_length", "2048"},
                                    {"tensor_model_parallel_size", ""}})
    EXPECT_EQ(count_of_rank("1555515597", {{name, value}}).verdict, Verdict::cannot_be_judged)
        << name << " " << value;
}

/// Over 2 tensor ranks 24 x (2 x 2,048^2 + 2,048 x 8,192 + 4 x 2,048) + 50,304 x 2,048 + 2 x 2,048; of 2
/// stages 12 x (4 x 2,048^2 + 2 x 2,048 x 8,192 + 4 x 2,048) + 50,304 x 2,048, and a quarter of both cuts.
TEST(WholeShapeSpec, MegatronsFirstRankHoldsItsShareOfACutModel) {
  const auto cut = [](const char* count, const char* tensor, const char* stages,
                      megatron_arguments_test::Arguments other = {}) {
    other["tensor_model_parallel_size"] = tensor, other["pipeline_model_parallel_size"] = stages;
    return count_of_rank(count, other);
  };
  for (const auto& [count, lie, tensor, stages] : {std::tuple("707203072", "777923379", "2", "1"),
                                                   {"707100672", "777810739", "1", "2"},
                                                   {"353599488", "353599489", "2", "2"}}) {
    EXPECT_EQ(cut(count, tensor, stages).verdict, Verdict::holds) << count;
    const Result wrong = cut(lie, tensor, stages);
    ASSERT_EQ(wrong.verdict, Verdict::contradicts) << lie;
    EXPECT_EQ(wrong.causes.front().id, "rank_miscounted");
  }
  // Biases: of 12 layers of half of queries, keys, values and inner width, and the whole of what is summed.
  EXPECT_EQ(cut("353734656", "2", "2", {{"add_bias_linear", "True"}}).verdict, Verdict::holds);
  // 8 heads of keys and of values, not 16: 24 x 2 x 2,048 x 1,024 fewer, half of them on each rank.
  const megatron_arguments_test::Arguments grouped = {{"group_query_attention", "True"},
                                                      {"num_query_groups", "8"}};
  EXPECT_EQ(cut("656871424", "2", "1", grouped).verdict, Verdict::holds);
  EXPECT_EQ(cut("707203072", "2", "1", grouped).verdict, Verdict::contradicts);
  EXPECT_EQ(cut("1313441792", "1", "1", grouped).verdict, Verdict::holds);
  EXPECT_EQ(cut("1313441793", "1", "1", grouped).verdict, Verdict::contradicts);
  // A tied head is no other table of a single stage's.
  EXPECT_EQ(cut("655691776", "2", "1", {{"untie_embeddings_and_output_weights", "False"}}).verdict,
            Verdict::holds);
  EXPECT_EQ(cut("707203072", "2", "1", {{"untie_embeddings_and_output_weights", "False"}}).verdict,
            Verdict::contradicts);
  // Ranks that do not share alike, stages of other layers, positions that are learned.
  EXPECT_EQ(cut("777923379", "3", "1").verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(cut("777923379", "1", "5").verdict, Verdict::cannot_be_judged);
  for (const auto& [name, value] : {std::pair("decoder_first_pipeline_num_layers", "10"),
                                    {"account_for_embedding_in_pipeline_split", "True"},
                                    {"position_embedding_type", "learned_absolute"},
                                    {"qk_layernorm", ""},
                                    {"num_experts", "8"}})
    EXPECT_EQ(cut("777810739", "1", "2", {{name, value}}).verdict, Verdict::cannot_be_judged) << name;
}

TEST(WholeShapeSpec, MegatronsCountIsHeldWhereNoArgumentLeavesParametersOpen) {
  // Gain and bias of 128 for queries and for keys of 24 layers; one offset for each of 16 heads of each.
  EXPECT_EQ(count_of_rank("1414217728", {{"qk_layernorm", "True"}}).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(count_of_rank("1414105472", {{"softmax_type", "learnable"}}).verdict, Verdict::cannot_be_judged);
  // RMSNorm's gains alone: 24 x 2 x 128 = 6,144 more, and none where the argument says so.
  const auto rms = [](const char* count, const char* normed) {
    return count_of_rank(count, {{"normalization", "RMSNorm"}, {"qk_layernorm", normed}}).verdict;
  };
  EXPECT_EQ(rms("1414111232", "True"), Verdict::holds);
  EXPECT_EQ(rms("1414111233", "True"), Verdict::contradicts);
  EXPECT_EQ(rms("1414105088", "True"), Verdict::contradicts);
  EXPECT_EQ(rms("1414111232", "False"), Verdict::contradicts);
  EXPECT_EQ(rms("1414105088", "False"), Verdict::holds);
  // Lost, of a value that is not known, or of a part that is not.
  for (const auto& [name, value] : {std::pair("qk_layernorm", ""),
                                    {"normalization", ""},
                                    {"normalization", "DyT"},
                                    {"add_bias_linear", ""},
                                    {"softmax_type", "off-by-one"},
                                    {"window_attn_skip_freq", "None"},
                                    {"attention_sink_k", "4"},
                                    {"retro_add_retriever", "True"},
                                    {"enable_hyper_connections", "True"},
                                    {"spec", "['local']"}})
    EXPECT_EQ(count_of_rank("1555515597", {{name, value}}).verdict, Verdict::cannot_be_judged)
        << name << " " << value;
}

/// As Megatron-LM of 2025 prints them, with the defaults of parts that no plain decoder has.
TEST(WholeShapeSpec, MegatronsDefaultsLeaveNoParametersOpen) {
  const megatron_arguments_test::Arguments defaults = {{"add_position_embedding", "True"},
                                                       {"apply_layernorm_1p", "False"},
                                                       {"attention_backend", "AttnBackend.auto"},
                                                       {"attention_dropout", "0.0"},
                                                       {"attention_sink_k", "0"},
                                                       {"attention_softmax_in_fp32", "True"},
                                                       {"bias_dropout_fusion", "True"},
                                                       {"clone_scatter_output_in_embedding", "True"},
                                                       {"hybrid_attention_ratio", "0.0"},
                                                       {"kv_lora_rank", "32"},
                                                       {"log_params_norm", "True"},
                                                       {"masked_softmax_fusion", "True"},
                                                       {"max_position_embeddings", "2048"},
                                                       {"moe_router_bias_update_rate", "0.001"},
                                                       {"norm_epsilon", "1e-05"},
                                                       {"q_lora_rank", "None"},
                                                       {"relative_attention_num_buckets", "32"},
                                                       {"retro_add_retriever", "False"},
                                                       {"retro_attention_gate", "1"},
                                                       {"softmax_type", "vanilla"},
                                                       {"spec", "None"},
                                                       {"use_rotary_position_embeddings", "True"},
                                                       {"window_attn_skip_freq", "None"}};
  EXPECT_EQ(count_of_rank("1414105088", defaults).verdict, Verdict::holds);
  EXPECT_EQ(count_of_rank("1414105089", defaults).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::whole_shape_test
