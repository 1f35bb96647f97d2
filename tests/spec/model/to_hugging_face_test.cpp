// labels: unit golden
// config.json as it is written: read back it is the same model, for every model that transformers has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <set>

#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/inventory.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::spec::to_hugging_face_test {
namespace {

using Json = nlohmann::json;

/// Equal but for the name, and for the MLPs' width where there is none.
void expect_same(ModelSpec model, const HuggingFaceConfig& written) {
  if (model.experts && model.sparse_layers() == model.layers) model.ffn = written.model.ffn;
  model.family = written.model.family;
  EXPECT_EQ(to_toml(written.model), to_toml(model));
  const auto ours = inventory(model).parameters, theirs = inventory(written.model).parameters;
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i].shape, theirs[i].shape) << ours[i].name;
}

TEST(ToHuggingFace, EveryBuiltInModelButGpt2IsReadBack) {
  int written = 0;
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    const ModelSpec model = find_model(name);
    if (model.norm == Norm::layer_norm) continue;  // GPT-2 is not trained
    expect_same(model, to_hugging_face(model, "BF16"));
    ++written;
  }
  EXPECT_GT(written, 25);
}

/// What transformers wrote, read, written by us and read again: the same, and the class is the same.
TEST(ToHuggingFace, TheFilesOfTransformersAreReadBack) {
  for (const char* family : {"llama", "qwen2", "qwen3", "mixtral", "qwen3_moe", "deepseek_v3", "olmoe"}) {
    const auto golden = tests::load_golden("model_inventories/" + std::string(family) + ".json");
    for (int i = 0; i < 5; ++i) {
      const std::string text = golden.text("config/" + std::to_string(i));
      SCOPED_TRACE(text);
      const ModelSpec model = model_from_hugging_face(text, "config.json");
      if (model.multi_token_layers > 0 && !model.latent) continue;
      const HuggingFaceConfig written = to_hugging_face(model, "F32");
      expect_same(model, written);
      EXPECT_EQ(Json::parse(written.json)["architectures"], Json::parse(text)["architectures"]);
    }
  }
  for (const std::string& name : tests::weight_folders()) {
    SCOPED_TRACE(name);
    const std::string text = tests::golden_bytes("weights/" + name + "/config.json");
    const HuggingFaceConfig written = to_hugging_face(model_from_hugging_face(text, "config.json"), "BF16");
    expect_same(model_from_hugging_face(text, "config.json"), written);
    EXPECT_EQ(Json::parse(written.json)["architectures"], Json::parse(text)["architectures"]);
    EXPECT_EQ(Json::parse(written.json)["torch_dtype"], "bfloat16");
  }
}

TEST(ToHuggingFace, AModelTakesTheClassThatComputesIt) {
  ModelSpec model = find_model("tiny-llama");
  EXPECT_EQ(Json::parse(to_hugging_face(model, "F32").json)["model_type"], "llama");
  model.window = 16;
  EXPECT_EQ(Json::parse(to_hugging_face(model, "F32").json)["model_type"], "mistral");
  model.window = 0, model.qkv_bias = true;  // under the names of a Llama, the layers of a Qwen2
  EXPECT_EQ(Json::parse(to_hugging_face(model, "F32").json)["model_type"], "qwen2");
  model.qkv_bias = false, model.qk_norm = true;
  EXPECT_EQ(Json::parse(to_hugging_face(model, "F32").json)["model_type"], "qwen3");
  model.window = 16;  // in every layer, which a Qwen3 says by the first layer that has one
  const HuggingFaceConfig windowed = to_hugging_face(model, "F32");
  EXPECT_EQ(Json::parse(windowed.json)["model_type"], "qwen3");
  EXPECT_EQ(windowed.model.window, 16);
  model.window = 0, model.qk_norm = false, model.experts = Experts{.count = 4, .active = 2, .width = 24};
  const HuggingFaceConfig mixtral = to_hugging_face(model, "F32");
  EXPECT_EQ(Json::parse(mixtral.json)["model_type"], "mixtral");
  EXPECT_NE(inventory(mixtral.model).parameters.at(8).name.find("block_sparse_moe"), std::string::npos);
}

/// What the model has as a real stands in the file as one, whole or not, and what it counts as an integer.
TEST(ToHuggingFace, RealsAreWrittenAsReals) {
  for (const char* name : {"llama3-8b", "qwen3-0.6b", "deepseek-v3", "olmoe-1b-7b"}) {
    SCOPED_TRACE(name);
    ModelSpec model = find_model(name);
    model.norm_eps = 1, model.init_std = 2, model.rope_theta = 1e15;
    if (model.experts && model.latent) model.experts->scaling_factor = 1;
    RopeScaling scaling{.factor = 4, .original_context = model.context / 4};
    if (model.latent)
      scaling.kind = RopeScalingKind::yarn, scaling.mscale = scaling.mscale_all_dim = 1,
      scaling.attention_factor = 2;
    model.rope_scaling = scaling;
    const Json config = Json::parse(to_hugging_face(model, "BF16").json);
    for (const Json& table : {config, config["rope_scaling"]})
      for (const auto& [key, value] : table.items()) {
        const bool real = std::set<std::string>{"rms_norm_eps",     "initializer_range",
                                                "rope_theta",       "routed_scaling_factor",
                                                "factor",           "low_freq_factor",
                                                "high_freq_factor", "beta_fast",
                                                "beta_slow",        "mscale",
                                                "mscale_all_dim",   "attention_factor"}
                              .contains(key);
        EXPECT_EQ(value.is_number_float(), real) << key << " = " << value;
      }
  }
}

/// A window that leaves nothing out is written where the class has one, and is none where it has not.
TEST(ToHuggingFace, AWindowAsLongAsTheContextIsNone) {
  for (const char* name : {"tiny-llama", "qwen3-0.6b", "mixtral-8x7b", "qwen3-30b-a3b", "olmoe-1b-7b"}) {
    ModelSpec model = find_model(name);
    for (const std::int64_t more : {0, 1, 1000}) {
      model.window = model.context + more;
      const HuggingFaceConfig written = to_hugging_face(model, "F32");
      EXPECT_EQ(written.model.window, 0);
      EXPECT_EQ(written.model.family, model.family);
      EXPECT_EQ(Json::parse(written.json)["architectures"],
                Json::parse(to_hugging_face(find_model(name), "F32").json)["architectures"]);
    }
  }
}

/// Sizes that a class cannot compute go to another class, or are refused with the reason.
TEST(ToHuggingFace, SizesThatAClassCannotComputeAreNotWrittenForIt) {
  ModelSpec model = find_model("tiny-llama");
  model.width += 2;  // 4 heads: a Llama's is a multiple of them, a Mistral's need not be
  ASSERT_NE(model.width % model.heads, 0);
  EXPECT_EQ(Json::parse(to_hugging_face(model, "F32").json)["model_type"], "mistral");
  model = find_model("olmoe-1b-7b");
  model.name = "wide", model.head_dim = 64;
  try {
    to_hugging_face(model, "F32");
    FAIL() << "written";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "no class of Hugging Face transformers computes model \"wide\": a \"olmoe\" norms queries over "
              "hidden_size = 2048 entries, and 16 heads of 64 have 1024; the classes are those of "
              "spec/model/hugging_face.md");
  }
}

TEST(ToHuggingFace, WhatNoClassComputesIsRefusedByItsFields) {
  ModelSpec model = find_model("tiny-llama");
  model.name = "mine", model.qkv_bias = true, model.qk_norm = true;
  try {
    to_hugging_face(model, "F32");
    FAIL() << "written";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(
        std::string(error.what())
            .rfind("no class of Hugging Face transformers computes model \"mine\": a \"llama\" has another "
                   "qk_norm, qkv_bias;",
                   0),
        0u)
        << error.what();
  }
}

TEST(ToHuggingFace, IdsOfTheTokenizerStandInBothFiles) {
  const TokenIds ids{.begin = 1, .end = 2, .pad = {}};
  for (const std::string& text :
       {to_hugging_face(find_model("tiny-llama"), "F64", ids).json, generation_config(ids)}) {
    const Json json = Json::parse(text);
    EXPECT_EQ(json["bos_token_id"], 1);
    EXPECT_EQ(json["eos_token_id"], 2);
    EXPECT_TRUE(json["pad_token_id"].is_null());
  }
}

}  // namespace
}  // namespace assay::spec::to_hugging_face_test
