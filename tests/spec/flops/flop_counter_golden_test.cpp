// labels: golden
// exact_flops against what PyTorch's FlopCounterMode saw transformers' models do (golden/generate/flops.py).
#include <gtest/gtest.h>

#include <map>

#include "spec/flops/conventions.hpp"
#include "spec/flops/exact.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::flop_counter_golden_test {
namespace {

ModelSpec small() {
  ModelSpec m;
  m.name = "small";
  m.vocab = 97, m.width = 32, m.layers = 2, m.heads = 4, m.kv_heads = 2, m.head_dim = 8, m.ffn = 48,
  m.context = 64;
  return m;
}

std::map<std::string, ModelSpec> models() {
  std::map<std::string, ModelSpec> all;
  all["llama"] = small();
  ModelSpec& tied = all["llama_tied"] = small();
  tied.kv_heads = 1, tied.tied_embeddings = true;
  ModelSpec& bias = all["qwen2_bias"] = small();
  bias.family = Family::qwen2, bias.qkv_bias = true;
  ModelSpec& wide = all["qwen3_wide_heads"] = small();
  wide.family = Family::qwen3, wide.head_dim = 16, wide.qk_norm = true;
  ModelSpec& gpt2 = all["gpt2"] = small();
  gpt2.family = Family::gpt2, gpt2.kv_heads = 4, gpt2.ffn = 112, gpt2.tied_embeddings = true;
  gpt2.norm = Norm::layer_norm, gpt2.mlp = Mlp::gelu, gpt2.positions = Positions::learned;
  gpt2.qkv_bias = gpt2.output_bias = gpt2.mlp_bias = gpt2.norm_bias = true;
  ModelSpec& mixtral = all["mixtral"] = small();
  mixtral.family = Family::mixtral;
  mixtral.experts = Experts{.count = 6, .active = 3, .width = 48};
  ModelSpec& qwen3_moe = all["qwen3_moe"] = small();
  qwen3_moe.family = Family::qwen3_moe, qwen3_moe.head_dim = 16, qwen3_moe.qk_norm = true;
  qwen3_moe.experts = Experts{.count = 8, .active = 2, .width = 20};
  ModelSpec& deepseek = all["deepseek_v3"] = small();
  deepseek.family = Family::deepseek_v3, deepseek.layers = 3, deepseek.kv_heads = 4, deepseek.head_dim = 16;
  deepseek.latent = LatentAttention{.query_rank = 24, .key_value_rank = 16, .rope_dim = 4, .value_dim = 10};
  deepseek.experts = Experts{.count = 8, .active = 2, .width = 20, .shared_width = 20, .first_dense = 1};
  return all;
}

class FlopCounter : public testing::TestWithParam<std::string> {
 protected:
  tests::GoldenFile golden = tests::load_golden("flops/" + GetParam() + ".json");
  std::int64_t counted(const std::string& name) const { return golden.ids(name).at(0); }
};

TEST_P(FlopCounter, SawWhatTheSpecCounts) {
  const ModelSpec model = models().at(GetParam());
  const auto T = static_cast<std::int64_t>(golden.scalar("tokens"));
  const FlopBreakdown flops = exact_flops(model, T);
  Count forward;
  for (std::size_t i = 0; i < flop_components; ++i) {
    const auto component = static_cast<FlopComponent>(i);
    const Count ours = flops.at(component, Pass::forward);
    if (component == FlopComponent::attention_scores || component == FlopComponent::attention_values)
      continue;
    const std::string name = "forward/" + std::string(to_string(component));
    const bool seen = golden.tensors.contains(name);
    EXPECT_EQ(seen, ours > Count(0)) << name;
    if (seen) {
      EXPECT_EQ(ours, Count(counted(name))) << name;
    }
    forward += ours;
  }
  // Eager attention multiplies all T * T pairs; causal ones are T (T + 1) / 2.
  const Count causal = flops.at(FlopComponent::attention_scores, Pass::forward) +
                       flops.at(FlopComponent::attention_values, Pass::forward);
  EXPECT_EQ((causal * (2 * T)).divided_exactly_by(T + 1), Count(counted("forward/attention")));
  EXPECT_EQ(forward + counted("forward/attention"), Count(counted("forward")));
  EXPECT_EQ(counted("backward"), 2 * counted("forward"));
}

/// The configuration that transformers wrote reads as the model that this file states.
TEST_P(FlopCounter, ConfigurationReadsAsThatModel) {
  const ModelSpec read = model_from_hugging_face(golden.text("config"), "config.json"),
                  stated = models().at(GetParam());
  EXPECT_EQ(parameter_count(read), parameter_count(stated));
  EXPECT_EQ(active_parameter_count(read), active_parameter_count(stated));
  EXPECT_EQ(exact_flops(read, 64).counts, exact_flops(stated, 64).counts);
}

/// torchtitan counts all pairs too, and beyond the products only the gains and biases.
TEST_P(FlopCounter, DiffersFromTorchtitanByVectorsAlone) {
  const ModelSpec model = models().at(GetParam());
  const auto T = static_cast<std::int64_t>(golden.scalar("tokens"));
  const ParameterCounts counts = parameter_counts(model);
  const Count lookups =
      counts.position_embedding + (model.tied_embeddings ? Count(0) : counts.token_embedding);
  const Count vectors = counts.active - matmul_parameters(model) - lookups;
  EXPECT_EQ(T * *flops_per_token(Convention::torchtitan, model, T).flops,
            Count(counted("forward")) + counted("backward") + 6 * T * vectors);
}

TEST_P(FlopCounter, SawTheSameParameters) {
  EXPECT_EQ(parameter_count(models().at(GetParam())),
            Count(static_cast<std::int64_t>(golden.scalar("parameters"))));
}

INSTANTIATE_TEST_SUITE_P(Models, FlopCounter,
                         testing::Values("llama", "llama_tied", "qwen2_bias", "qwen3_wide_heads", "gpt2",
                                         "mixtral", "qwen3_moe", "deepseek_v3"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace assay::spec::flop_counter_golden_test
