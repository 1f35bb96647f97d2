// labels: unit property fuzz
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {
namespace {

using Json = nlohmann::json;

/// The keys of Meta-Llama-3.1-8B's config.json that describe its structure.
Json llama_3_1() {
  return Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "mlp_bias": false,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"}})");
}

Json qwen3_0_6b() {
  return Json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
    "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})");
}

ModelSpec read(const Json& config) {
  return model_from_hugging_face(config.dump(), "hub/Some-Model/config.json");
}

std::string error_of(const Json& config) {
  try {
    read(config);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  } catch (const SpecError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HuggingFace, ReadsLlama31WithItsRopeScaling) {
  ModelSpec expected = find_model("llama3-8b");
  expected.name = std::string("Some-Model");
  expected.context = 131072;
  expected.rope_scaling = RopeScaling{8, 1, 4, 8192};
  EXPECT_EQ(read(llama_3_1()), expected);
}

TEST(HuggingFace, ReadsQwen3) {
  ModelSpec expected = find_model("qwen3-0.6b");
  expected.name = std::string("Some-Model");
  EXPECT_EQ(read(qwen3_0_6b()), expected);
}

TEST(HuggingFace, ReadsTheNewerRopeParameters) {
  Json config = llama_3_1();
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = 500000.0;
  config.erase("rope_scaling");
  config.erase("rope_theta");
  EXPECT_EQ(read(config), read(llama_3_1()));
}

TEST(HuggingFace, FillsWhatOlderFilesLeaveOut) {
  Json config = llama_3_1();
  for (const char* key : {"rope_scaling", "rope_theta", "num_key_value_heads", "tie_word_embeddings",
                          "hidden_act", "attention_bias", "mlp_bias", "initializer_range"})
    config.erase(key);
  const ModelSpec model = read(config);
  EXPECT_EQ(model.kv_heads, 32);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.rope_theta, 10000);
  EXPECT_FALSE(model.rope_scaling);
  EXPECT_FALSE(model.tied_embeddings);
  Json qwen = qwen3_0_6b();
  qwen.erase("head_dim");  // 128 in Qwen3Config, not hidden_size / heads = 64
  EXPECT_EQ(read(qwen).head_dim, 128);
}

TEST(HuggingFace, RefusesByNameWhatTheSpecDoesNotHave) {
  const std::vector<std::pair<std::string, Json>> features = {
      {"attention_bias", true},       {"mlp_bias", true},
      {"hidden_act", "gelu"},         {"use_sliding_window", true},
      {"sliding_window", 4096},       {"layer_types", Json::array({"full_attention", "sliding_attention"})},
      {"partial_rotary_factor", 0.5}, {"quantization_config", {{"quant_method", "fp8"}}},
      {"model_type", "mixtral"}};
  for (const auto& [key, value] : features) {
    Json config = llama_3_1();
    config[key] = value;
    const std::string error = error_of(config);
    EXPECT_EQ(error.find("hub/Some-Model/config.json: "), 0u) << error;
    const std::string named = key == "layer_types"      ? "sliding_attention"
                              : key == "sliding_window" ? "sliding"
                                                        : key;
    EXPECT_NE(error.find(named), std::string::npos) << error;
  }
  for (const char* type : {"linear", "dynamic", "yarn", "longrope"}) {
    Json config = llama_3_1();
    config["rope_scaling"] = {{"type", type}, {"factor", 2.0}};
    EXPECT_NE(error_of(config).find(type), std::string::npos) << error_of(config);
  }
}

TEST(HuggingFace, AcceptsAWindowSizeThatIsNotInUse) {
  Json config = qwen3_0_6b();
  config["sliding_window"] = 4096;
  EXPECT_EQ(error_of(config), "accepted");
}

TEST(HuggingFace, NamesWhatIsMissingOrOfAnotherType) {
  Json config = llama_3_1();
  config.erase("vocab_size");
  EXPECT_EQ(error_of(config),
            "hub/Some-Model/config.json: \"vocab_size\" is missing; this is not a complete config.json");
  config["vocab_size"] = "128256";
  EXPECT_NE(error_of(config).find("must be an integer"), std::string::npos);
  config["vocab_size"] = 18446744073709551615u;
  EXPECT_NE(error_of(config).find("must be at most 9223372036854775807, not 18446744073709551615"),
            std::string::npos);
  config["vocab_size"] = -5;
  EXPECT_EQ(error_of(config).substr(0, 8), "model_c1");
}

TEST(HuggingFace, SurvivesDeepNesting) {
  std::string deep(400000, '[');
  deep.append(400000, ']');
  EXPECT_THROW(model_from_hugging_face(deep, "deep"), UserError);
  EXPECT_THROW(model_from_hugging_face("{\"vocab_size\": " + deep + ", \"model_type\": \"llama\"}", "deep"),
               UserError);
}

/// Each edit drops a key or puts a value of any kind in its place; and then bytes of the text are changed.
RC_GTEST_PROP(HuggingFace, AnswersAnyEditWithAModelOrAnError, ()) {
  Json config = *rc::gen::arbitrary<bool>() ? llama_3_1() : qwen3_0_6b();
  for (int edit = *rc::gen::inRange(0, 4); edit > 0; --edit) {
    auto at = config.begin();
    std::advance(at, *rc::gen::inRange<std::size_t>(0, config.size()));
    at.value() = Json::parse(*rc::gen::element<std::string>(
        "null", "0", "-1", "1", "3", "1.5", "1e308", "9223372036854775807", "18446744073709551615", "true",
        "\"\"", "\"llama\"", "\"default\"", "[]", "{}", "{\"rope_type\": \"llama3\"}", "{\"type\": 3}",
        "[\"full_attention\"]"));
  }
  std::string text = config.dump();
  for (int edit = *rc::gen::inRange(0, 3); edit > 0; --edit)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  try {
    check(model_from_hugging_face(text, "edited"));
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::usage);
    RC_ASSERT(std::string(error.what()).find("edited") == 0);
  } catch (const SpecError& error) {
    RC_ASSERT(error.label().find("model_c") == 0);
  }
}

}  // namespace
}  // namespace assay::spec
