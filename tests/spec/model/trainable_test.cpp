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

TEST(Trainable, TheReferenceIsAheadOfTheTrainer) {
  for (const char* name : {"tiny-llama", "qwen2.5-0.5b", "mixtral-8x7b", "qwen3-30b-a3b", "olmoe-1b-7b"})
    EXPECT_NO_THROW(require_computed(find_model(name))) << name;
  ModelSpec model = find_model("deepseek-v3");
  EXPECT_EQ(uncomputed_feature(model), "multi-token prediction");
  model.multi_token_layers = 0;
  EXPECT_NO_THROW(require_computed(model));
  EXPECT_NO_THROW(require_trainable(model));
  model.norm = Norm::layer_norm;
  try {
    require_computed(model);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(),
                 "model \"deepseek-v3\" has layer_norm, which the reference does not compute; give it a "
                 "model that spec/model/fields.hpp lets pass");
  }
}

TEST(Trainable, TakesANormAcrossHeads) { EXPECT_NO_THROW(require_trainable(find_model("olmoe-1b-7b"))); }

TEST(Trainable, TakesTheRouterOfDeepSeekV3) {
  ModelSpec model = find_model("tiny-llama");
  model.experts = Experts{.count = 8,
                          .active = 3,
                          .width = 8,
                          .router_bias = true,
                          .scoring = Scoring::sigmoid,
                          .groups = 4,
                          .active_groups = 2,
                          .scaling_factor = 2.5};
  EXPECT_NO_THROW(require_trainable(model));
}

TEST(Trainable, NamesWhatTheTrainerDoesNotCompute) {
  const std::pair<const char*, std::function<void(ModelSpec&)>> features[] = {
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
      EXPECT_NE(std::string(error.what()).find("train a model of type \"llama\", \"mistral\", "),
                std::string::npos);
    }
  }
}

TEST(Trainable, ListsTheFamiliesOfWhichAModelTrains) {
  for (const Family family : choices<Family>()) {
    ModelSpec model = find_model("tiny-llama");
    model.family = family;
    EXPECT_EQ(trainable(family), untrainable_feature(model).empty()) << to_string(family);
    EXPECT_EQ(trainable(family),
              trainable_types().find('"' + std::string(to_string(family)) + '"') != std::string::npos);
  }
}

}  // namespace
}  // namespace assay::spec::trainable_test
