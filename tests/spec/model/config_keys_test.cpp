// labels: unit golden property
// Which keys of a config.json count: by what transformers' classes know, ask for and are moved by
// (golden/config_keys).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::config_keys_test {
namespace {

using Json = nlohmann::json;

constexpr const char* types[] = {"llama",     "mistral", "qwen2",       "qwen3", "mixtral",
                                 "qwen3_moe", "olmoe",   "deepseek_v3", "gpt2"};

/// What transformers says of one model type.
struct Class {
  Json config;                  ///< a small model
  std::set<std::string> known;  ///< keys that its class knows or its model asks for
  Json moves;                   ///< keys, each with a value that changes what is computed
};

Class class_of(const std::string& type) {
  const Json keys = Json::parse(tests::load_golden("config_keys/" + type + ".json").text("keys"));
  Class out{.config = keys["config"], .known = keys["known"], .moves = keys["moves"]};
  out.known.merge(keys["read"].get<std::set<std::string>>());
  out.known.insert("model_type");  // no field
  return out;
}

struct Answer {
  ModelSpec model;
  std::string listed, refused;
};

Answer answer(const Json& config) {
  try {
    const HuggingFaceModel read = read_hugging_face(config.dump(), "config.json");
    std::string listed;
    for (const std::string& option : read.without_effect) listed += option + "\n";
    return {read.model, listed, ""};
  } catch (const UserError& error) {
    return {{}, "", error.what()};
  } catch (const SpecError& error) {
    return {{}, "", error.what()};
  }
}

class ConfigKeys : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Types, ConfigKeys, testing::ValuesIn(types),
                         [](const auto& of) { return std::string(of.param); });

/// What moves transformers' loss, logits or text is computed, refused by name, or a setting of the run.
TEST_P(ConfigKeys, WhatChangesTheComputationIsNeverPassedOver) {
  const std::string type = GetParam();
  const Class known = class_of(type);
  const Answer plain = answer(known.config);
  ASSERT_EQ(plain.refused, "");
  EXPECT_EQ(plain.listed, "");
  EXPECT_GE(known.moves.size(), 6u);
  for (const auto& [key, value] : known.moves.items()) {
    // GPT-2 is counted, not trained.
    if (type == "gpt2" && (key.ends_with("_pdrop") || key == "activation_function")) continue;
    Json config = known.config;
    config[key] = value;
    const Answer changed = answer(config);
    const bool computed = changed.refused.empty() && changed.model != plain.model;
    const bool refused = changed.refused.find(key) != std::string::npos;
    const bool of_run =
        key == "output_router_logits" && changed.listed.find("experts.balance") != std::string::npos;
    EXPECT_TRUE(computed || refused || of_run)
        << key << " = " << value << ": " << changed.listed << changed.refused;
  }
}

/// What the class does not know is listed, once, whatever it is, and changes nothing.
TEST_P(ConfigKeys, WhatTheClassDoesNotKnowIsListedAndChangesNothing) {
  const std::string type = GetParam();
  const Class known = class_of(type);
  const Answer plain = answer(known.config);
  std::set<std::string> foreign = {
      "is_llama_config",     "transformers.js_config",  "_attn_implementation_autoset",
      "neftune_noise_alpha", "final_logit_softcapping", "use_qk_norm",
      "residual_multiplier", "no_rope_layers"};
  for (const char* other : types) foreign.merge(class_of(other).known);
  // Published with the type, and saying what its class computes; or about how the weights are used.
  const std::set<std::string> implied = {"ep_size", "qk_head_dim", "max_window_layers", "sliding_window"};
  int tried = 0;
  for (const std::string& key : foreign) {
    if (known.known.contains(key) || (implied.contains(key) && type != std::string("llama"))) continue;
    for (const Json& value :
         {Json(true), Json(false), Json(1), Json(0.5), Json("x"), Json({1}), Json({{"a", 1}})}) {
      Json config = known.config;
      config[key] = value;
      const Answer changed = answer(config);
      EXPECT_EQ(changed.refused, "") << type << " " << key << " = " << value;
      EXPECT_EQ(changed.model, plain.model) << type << " " << key << " = " << value;
      EXPECT_EQ(changed.listed.find(key + " = "), 0u)
          << type << " " << key << " = " << value << changed.listed;
      EXPECT_EQ(std::ranges::count(changed.listed, '\n'), 1) << changed.listed;
      ++tried;
    }
  }
  EXPECT_GT(tried, 100);
}

/// What the class knows is never called unknown, whatever it is.
TEST_P(ConfigKeys, WhatTheClassKnowsIsNeverCalledUnknown) {
  const std::string type = GetParam();
  const Class known = class_of(type);
  for (const std::string& key : known.known)
    for (const Json& value :
         {Json(nullptr), Json(true), Json(7), Json(0.5), Json("x"), Json({1}), Json({{"a", 1}})}) {
      if (key == "model_type" || (key.starts_with("rope_") && value.is_object())) continue;
      Json config = known.config;
      config[key] = value;
      const Answer changed = answer(config);
      EXPECT_EQ(changed.listed.find("(no option"), std::string::npos) << type << " " << changed.listed;
      if (!value.is_null()) continue;
      EXPECT_EQ(changed.refused.find("changes what is computed"), std::string::npos) << type << " " << key;
    }
}

TEST(ConfigKeysOfRope, AreThoseOfTransformers) {
  const Json keys = Json::parse(tests::load_golden("config_keys/llama.json").text("keys"));
  std::set<std::string> all = {"full_attention", "sliding_attention"};  // tables of their own
  for (const auto& [type, of_type] : keys["rope"].items()) all.merge(of_type.get<std::set<std::string>>());
  for (const std::string& key : all) {
    Json config = keys["config"];
    config["rope_parameters"][key] = {1};
    EXPECT_EQ(answer(config).listed, "") << key;
  }
  Json config = keys["config"];
  config["rope_parameters"]["scale"] = 2;
  EXPECT_EQ(answer(config).listed, "rope_parameters.scale = 2 (no option of a \"yarn\" in transformers)\n");
  config["rope_parameters"]["full_attention"] = {{"rope_theta", 10.0}};
  EXPECT_NE(answer(config).refused.find("\"rope_parameters.full_attention\""), std::string::npos);
  config = keys["config"];
  config["rope_parameters"]["partial_rotary_factor"] = 0.5;
  EXPECT_NE(answer(config).refused.find("it passes as 1"), std::string::npos) << answer(config).refused;
  config = keys["config"];  // transformers takes rope_scaling where both are there
  config["rope_scaling"] = {{"type", "llama3"},
                            {"factor", 2.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 16}};
  EXPECT_EQ(answer(config).model.rope_scaling->kind, RopeScalingKind::llama3);
}

TEST(ConfigKeysOfAFile, ANameOfSeveralWordsIsNoneOfThem) {
  Json config = class_of("llama").config;
  config["bos_token_id dtype"] = 1;
  EXPECT_EQ(answer(config).listed, "bos_token_id dtype = 1 (no option of a \"llama\" in transformers)\n");
}

/// A file with keys of any name and value is read as without them.
RC_GTEST_PROP(ConfigKeysProperty, AnyUnknownKeyChangesNothing, ()) {
  const std::string type = *rc::gen::elementOf(std::vector<std::string>(std::begin(types), std::end(types)));
  static std::map<std::string, Class> classes;
  if (!classes.contains(type)) classes.emplace(type, class_of(type));
  const Class& known = classes.at(type);
  Json config = known.config;
  const auto name = *rc::gen::nonEmpty(rc::gen::string<std::string>());
  RC_PRE(!known.known.contains(name));
  config[name] = *rc::gen::element(Json(true), Json(3), Json("x"), Json::array(), Json::object());
  const std::string text = config.dump(-1, ' ', true, Json::error_handler_t::replace);
  RC_ASSERT(read_hugging_face(text, "config.json").model ==
            read_hugging_face(known.config.dump(), "config.json").model);
}

}  // namespace
}  // namespace assay::spec::config_keys_test
