// labels: golden
// A config.json in which one key is missing, or null, against what transformers' classes make of it
// (golden/config_defaults).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::config_defaults_test {
namespace {

using Json = nlohmann::json;

ModelSpec read(const Json& config) { return model_from_hugging_face(config.dump(), "config.json"); }

/// TOML of what is read, or the error.
std::string outcome(const Json& config) {
  try {
    return to_toml(read(config));
  } catch (const UserError& error) {
    return error.what();
  } catch (const SpecError& error) {
    return error.what();
  }
}

/// `key` as the golden table names it: of the file, or "rope_parameters.factor".
Json& place(Json& config, const std::string& key, std::string& last) {
  const std::size_t dot = key.find('.');
  last = key.substr(dot == std::string::npos ? 0 : dot + 1);
  return dot == std::string::npos ? config : config[key.substr(0, dot)];
}

class ConfigDefaults : public testing::TestWithParam<const char*> {};

TEST_P(ConfigDefaults, AreThoseOfTransformersClasses) {
  const auto golden = tests::load_golden("config_defaults/" + std::string(GetParam()) + ".json");
  const Json whole = Json::parse(golden.text("config")), written = Json::parse(golden.text("written"));
  EXPECT_EQ(to_toml(read(whole)), to_toml(read(written)));
  int compared = 0;
  for (const bool null : {false, true}) {
    const Json table = Json::parse(golden.text(null ? "null" : "absent"));
    for (const auto& [key, changes] : table.items()) {
      if (changes.is_string()) continue;  // the class refuses the file
      // The class keeps this number and computes no such block.
      if (key == "num_nextn_predict_layers") continue;
      Json given = whole, meant = written;
      std::string last;
      Json& table_of_key = place(given, key, last);
      if (null)
        table_of_key[last] = nullptr;
      else
        table_of_key.erase(last);
      for (const auto& [changed, value] : changes.items()) meant[changed] = value;
      // What a file must state is asked for, whatever the class takes instead.
      const std::string ours = outcome(given), lacks = null ? "\" is null" : "\" is missing";
      if (ours.find(last + lacks + "; this is not a complete config.json") != std::string::npos) continue;
      EXPECT_EQ(ours, outcome(meant)) << (null ? "null " : "without ") << key;
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigDefaults,
                         testing::Values("llama", "llama_scaled", "mistral", "qwen2", "qwen3", "qwen3_yarn",
                                         "mixtral", "qwen3_moe", "olmoe", "deepseek_v3", "gpt2"),
                         [](const auto& file) { return std::string(file.param); });

}  // namespace
}  // namespace assay::spec::config_defaults_test
