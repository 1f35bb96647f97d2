// labels: unit
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/trainable.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::find_model_test {
namespace {
namespace fs = std::filesystem;

class FindModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("assay-find-model-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "Tiny-Hub");
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string error_of(const std::string& name) {
    try {
      find_model(name);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "accepted";
  }
  fs::path folder_;
};

const std::string config =
    R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "vocab_size": 32,
  "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5})";

TEST_F(FindModel, KnowsBuiltInNames) { EXPECT_EQ(find_model("llama3-8b").width, 4096); }

TEST_F(FindModel, ReadsATomlFile) {
  EXPECT_EQ(find_model(write("mine.toml", to_toml(find_model("tiny-qwen3")))), find_model("tiny-qwen3"));
}

TEST_F(FindModel, ReadsAConfigJsonAndItsFolder) {
  const std::string path = write("Tiny-Hub/config.json", config);
  EXPECT_EQ(find_model(path).name, "Tiny-Hub");
  EXPECT_EQ(find_model((folder_ / "Tiny-Hub").string()), find_model(path));
  EXPECT_EQ(find_model((folder_ / "Tiny-Hub/").string()), find_model(path));
}

/// transformers builds no block of multi-token prediction; FLOPs of one are counted apart.
TEST_F(FindModel, ToTrainLeavesOutTheBlockOfMultiTokenPrediction) {
  std::string text = tests::golden_bytes("weights/deepseek_v3/config.json");
  const std::string none = "\"num_nextn_predict_layers\": 0";
  text.replace(text.find(none), none.size(), "\"num_nextn_predict_layers\": 1");
  const std::string path = write("Tiny-Hub/config.json", text);
  EXPECT_EQ(find_model(path).multi_token_layers, 1);
  const HuggingFaceModel found = find_model_to_train(path);
  EXPECT_EQ(found.model.multi_token_layers, 0);
  EXPECT_EQ(untrainable_feature(found.model), "");
  ASSERT_EQ(found.without_effect.size(), 1u);
  EXPECT_EQ(found.without_effect[0].find("num_nextn_predict_layers = 1 (the model is trained without"), 0u);
  // A model that states it by itself means it.
  EXPECT_EQ(find_model_to_train("deepseek-v3").model.multi_token_layers, 1);
}

TEST_F(FindModel, NamesTheNearestBuiltIn) {
  const std::string error = error_of("lama3-8b");
  EXPECT_NE(error.find("did you mean \"llama3-8b\"?"), std::string::npos) << error;
  EXPECT_NE(error.find("llama3-{70b,8b}"), std::string::npos) << error;
  EXPECT_NE(error.find(", mixtral-{8x22b,8x7b}, moe-4b, "), std::string::npos) << error;
}

TEST_F(FindModel, SaysWhatIsWrongWithAPath) {
  EXPECT_NE(error_of(folder_.string()).find("holds no config.json"), std::string::npos);
  EXPECT_NE(error_of(write("weights.bin", "x")).find("neither a .toml nor a .json"), std::string::npos);
  EXPECT_NE(error_of(write("big.json", std::string((1 << 20) + 1, ' ')))
                .find("it has 1,048,577 bytes, and a model's file at most 1,048,576"),
            std::string::npos);
  EXPECT_NE(error_of("").find("built-in models"), std::string::npos);
  EXPECT_NE(error_of(std::string(1 << 16, 'x')).find("built-in models"), std::string::npos);
  EXPECT_NE(error_of(std::string("tiny\0llama", 10)).find("built-in models"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::find_model_test
