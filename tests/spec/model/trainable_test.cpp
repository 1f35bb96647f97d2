// labels: unit
#include "spec/model/trainable.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "spec/config/check.hpp"
#include "spec/error.hpp"

namespace assay::spec::trainable_test {
namespace {

TEST(Trainable, TakesLlamaMistralQwen2AndDenseQwen3) {
  for (const char* name :
       {"tiny-llama", "tiny-qwen3", "llama3-8b", "mistral-7b", "qwen2.5-0.5b", "qwen2.5-7b", "qwen3-0.6b"})
    EXPECT_NO_THROW(require_trainable(find_model(name))) << name;
}

TEST(Trainable, TakesEveryGatedMlp) {
  ModelSpec model = find_model("tiny-llama");
  model.mlp = Mlp::geglu;
  EXPECT_NO_THROW(require_trainable(model));
}

TEST(Trainable, NamesWhatTheTrainerDoesNotCompute) {
  const std::pair<const char*, std::function<void(ModelSpec&)>> features[] = {
      {"a mixture of experts",
       [](ModelSpec& m) { m.experts = Experts{.count = 4, .active = 2, .width = 8}; }},
      {"latent attention", [](ModelSpec& m) { m.latent = LatentAttention{}; }},
      {"multi-token prediction", [](ModelSpec& m) { m.multi_token_layers = 1; }},
      {"layer_norm", [](ModelSpec& m) { m.norm = Norm::layer_norm; }},
      {"gelu", [](ModelSpec& m) { m.mlp = Mlp::gelu; }},
      {"learned positions", [](ModelSpec& m) { m.positions = Positions::learned; }},
      {"a bias of its attention output", [](ModelSpec& m) { m.output_bias = true; }},
      {"biases of its MLP", [](ModelSpec& m) { m.mlp_bias = true; }},
      {"family gpt2", [](ModelSpec& m) { m.family = Family::gpt2; }}};
  for (const auto& [named, change] : features) {
    ModelSpec model = find_model("tiny-llama");
    change(model);
    EXPECT_NE(untrainable_feature(model).find(named), std::string::npos) << untrainable_feature(model);
    try {
      check(RunConfig{}, model);
      ADD_FAILURE() << named << ": accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()).find("model \"tiny-llama\" cannot be trained: it has "), 0u);
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::spec::trainable_test
