// labels: unit
// Megatron's arguments as its programs print them: which MLP a block has.
#include <gtest/gtest.h>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/readers/megatron_arguments.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::megatron_arguments_test {
namespace {

std::string of_mlp(const Arguments& arguments, double matrices) {
  return run(
      arguments, [](double step, double) { return cosine(step, 10, 1000); }, matrices);
}
Verdict of_rate(const std::string& log) {
  return judge("flops_rate_of_batch", tests::read_text(log)).verdict;
}

constexpr double D = 2048, F = 8192;

TEST(MegatronArgumentsSpec, AnMlpIsGatedOnlyWhereSwigluSaysSo) {
  EXPECT_EQ(of_rate(of_mlp({}, 24 * 2 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp({}, 24 * 3 * D * F)), Verdict::contradicts);
  EXPECT_EQ(of_rate(of_mlp({{"swiglu", "True"}}, 24 * 3 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp({{"swiglu", "True"}}, 24 * 2 * D * F)), Verdict::contradicts);
  for (const double matrices : {2.0, 3.0})
    EXPECT_EQ(of_rate(of_mlp({{"swiglu", ""}}, 24 * matrices * D * F)), Verdict::cannot_be_judged);
}

TEST(MegatronArgumentsSpec, ATokenVisitsTheExpertsThatItIsRoutedTo) {
  const Arguments eight = {{"num_experts", "8"}, {"swiglu", "True"}};
  EXPECT_EQ(of_rate(of_mlp(eight, 24 * 2 * 3 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp(eight, 24 * 3 * D * F)), Verdict::contradicts);
  Arguments mixed = eight;
  mixed["moe_ffn_hidden_size"] = "1024";
  mixed["moe_shared_expert_intermediate_size"] = "2048";
  mixed["moe_layer_freq"] = "[0, 1" + [] {
    std::string ones;
    for (int layer = 2; layer < 24; ++layer) ones += ", 1";
    return ones + "]";
  }();
  const double sparse = 3 * D * (2 * 1024 + 2048);
  EXPECT_EQ(of_rate(of_mlp(mixed, 3 * D * F + 23 * sparse)), Verdict::holds);
  // Earlier versions count every layer as sparse, and experts as wide as a dense MLP.
  EXPECT_EQ(of_rate(of_mlp(mixed, 24 * 3 * D * (2 * F + 2048))), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp(mixed, 24 * 3 * D * F)), Verdict::contradicts);
  mixed["moe_layer_freq"] = "2";
  EXPECT_EQ(of_rate(of_mlp(mixed, 12 * 3 * D * F + 12 * sparse)), Verdict::holds);
}

TEST(MegatronArgumentsSpec, BlocksOfAnotherKindOrOfLostLinesAreNotJudged) {
  for (const Arguments& other : {Arguments{{"multi_latent_attention", "True"}},
                                 {{"squared_relu", "True"}},
                                 {{"num_experts", ""}},
                                 {{"num_experts", "8"}, {"moe_router_topk", ""}},
                                 {{"num_experts", "8"}, {"moe_ffn_hidden_size", ""}},
                                 {{"num_experts", "8"}, {"moe_layer_freq", "[0, 1, 0]"}}})
    EXPECT_EQ(of_rate(of_mlp(other, 24 * 3 * D * F)), Verdict::cannot_be_judged) << other.begin()->first;
  // Versions before experts print none of their lines.
  EXPECT_EQ(of_rate(of_mlp({{"num_experts", ""},
                            {"moe_router_topk", ""},
                            {"moe_ffn_hidden_size", ""},
                            {"moe_layer_freq", ""},
                            {"moe_shared_expert_intermediate_size", ""}},
                           24 * 2 * D * F)),
            Verdict::holds);
}

TEST(MegatronArgumentsSpec, OneGpusFlopsSayNothingOfABatchOfNobodyKnowsHowMany) {
  const Arguments lost = {{"world_size", ""}, {"data_parallel_size", ""}, {"tensor_model_parallel_size", ""}};
  EXPECT_EQ(of_rate(of_mlp({}, 24 * 2 * D * F)), Verdict::holds);
  const auto result = judge("flops_rate_of_batch", tests::read_text(of_mlp(lost, 24 * 2 * D * F)));
  EXPECT_EQ(result.verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(result.note, "number of GPUs");
  const RunRecord stated = tests::read_text(of_mlp(lost, 24 * 2 * D * F), "gpus=8");
  EXPECT_EQ(judge("flops_rate_of_batch", stated).verdict, Verdict::holds);
  const RunRecord other = tests::read_text(of_mlp(lost, 24 * 2 * D * F), "gpus=16");
  EXPECT_EQ(judge("flops_rate_of_batch", other).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::megatron_arguments_test
