// labels: unit
// Counts of parameters beside the arguments of Megatron-LM: of the whole model, and of what its first rank
// holds.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/readers/megatron_arguments.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::whole_shape_megatron_test {
namespace {

using tests::read_text;
using tests::result_of;

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
  EXPECT_EQ(count_of_rank("1414105088", {{"normalization", "RMSNorm"}}).verdict, Verdict::holds);
  // Biases of norms (LayerNorm): 49 x 2,048; of every projection too: 24 x (5 x 2,048 + 8,192) = 442,368
  // more.
  EXPECT_EQ(count_of_rank("1414205440").verdict, Verdict::holds);
  EXPECT_EQ(count_of_rank("1414205440", {{"normalization", "RMSNorm"}}).verdict, Verdict::contradicts);
  EXPECT_EQ(count_of_rank("1414105088").verdict, Verdict::contradicts);
  EXPECT_EQ(count_of_rank("1414205441").recomputed.low, 1414205440) << "with LayerNorm's biases";
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
  EXPECT_EQ(cut("1313542144", "1", "1", grouped).verdict, Verdict::holds);
  EXPECT_EQ(cut("1313542145", "1", "1", grouped).verdict, Verdict::contradicts);
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
                                    {"noop_layers", "{0}"},
                                    {"num_layer_list", "[10, 14]"},
                                    {"position_embedding_type", "learned_absolute"},
                                    {"qk_layernorm", ""},
                                    {"num_experts", "8"}})
    EXPECT_EQ(cut("777810739", "1", "2", {{name, value}}).verdict, Verdict::cannot_be_judged) << name;
}

/// 12 x 2 x 2,048 biases of norms, 12 x 3 x 2,048 of queries, keys and values.
TEST(WholeShapeSpec, MegatronsFirstRankHoldsTheBiasesThatArgumentsState) {
  const auto cut = [](int count, megatron_arguments_test::Arguments other) {
    other["pipeline_model_parallel_size"] = "2";
    return count_of_rank(std::to_string(count).c_str(), other).verdict;
  };
  constexpr int norms = 12 * 2 * 2048, qkv = 12 * 3 * 2048, plain = 707100672;
  for (const auto& [count, norm] : {std::pair(plain, "RMSNorm"), {plain - norms, "LayerNorm"}})
    EXPECT_EQ(cut(count, {{"normalization", norm}, {"add_qkv_bias", "False"}}), Verdict::contradicts) << norm;
  EXPECT_EQ(cut(plain, {{"add_qkv_bias", "False"}}), Verdict::holds);
  EXPECT_EQ(cut(plain + qkv, {{"add_qkv_bias", "False"}}), Verdict::contradicts);
  EXPECT_EQ(cut(plain + qkv, {{"add_qkv_bias", "True"}}), Verdict::holds);
  EXPECT_EQ(cut(plain, {{"add_qkv_bias", "True"}}), Verdict::contradicts);
  EXPECT_EQ(cut(plain + qkv, {}), Verdict::holds) << "no argument says so";
  EXPECT_EQ(cut(plain + qkv, {{"add_bias_linear", "True"}}), Verdict::contradicts);
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
  EXPECT_EQ(count_of_rank("1414205440", defaults).verdict, Verdict::holds);
  EXPECT_EQ(count_of_rank("1414205441", defaults).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::whole_shape_megatron_test
