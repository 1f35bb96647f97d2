// labels: unit golden
// Where files hold the parameters: of folders that Hugging Face transformers wrote (golden/weights), and of
// the same ones made wrong.
#include "spec/checkpoint/weight_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "spec/error.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::spec::weight_files_test {
namespace {

using tests::WeightFolderInMemory;

class WeightFolders : public testing::TestWithParam<std::string> {};

/// Every element of the files belongs to one parameter, and to no other.
TEST_P(WeightFolders, HoldEveryParameterOnce) {
  const WeightFolderInMemory folder(GetParam());
  std::int64_t elements = 0, in_files = 0;
  std::set<const std::byte*> starts;
  for (std::size_t i = 0; i < folder.inventory.parameters.size(); ++i) {
    elements += folder.inventory.parameters[i].size;
    EXPECT_TRUE(starts.insert(folder.bytes_of(i).data()).second) << folder.inventory.parameters[i].name;
  }
  for (const WeightFile& file : folder.files)
    for (const safetensors::Tensor& tensor : file.header.tensors)
      in_files +=
          static_cast<std::int64_t>((tensor.end - tensor.begin) / safetensors::element_bytes(tensor.dtype));
  EXPECT_EQ(elements, in_files);
  EXPECT_TRUE(folder.sources.ignored.empty());
}

INSTANTIATE_TEST_SUITE_P(Families, WeightFolders, testing::ValuesIn(tests::weight_folders()),
                         [](const auto& name) { return name.param; });

/// Headers of a folder, changed, and what is said of them.
std::string refusal(const std::string& name, const std::function<void(std::vector<WeightFile>&)>& change) {
  WeightFolderInMemory folder(name);
  change(folder.files);
  try {
    find_weights(folder.model, folder.inventory, folder.files, "a/folder");
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_EQ(std::string(error.what()).rfind("a/folder: ", 0), 0u) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

safetensors::Tensor& tensor_of(std::vector<WeightFile>& files, const std::string& name) {
  for (WeightFile& file : files)
    for (safetensors::Tensor& tensor : file.header.tensors)
      if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

void expect_says(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(WeightFilesSpec, C1ATensorInTwoPlacesIsNamed) {
  expect_says(refusal("llama_f32_sharded",
                      [](auto& files) { files[1].header.tensors.push_back(files[0].header.tensors[0]); }),
              {"weight_files_c1", "model-00001-of-00004.safetensors, model-00002-of-00004.safetensors"});
  // Experts one by one beside their stack.
  expect_says(
      refusal("olmoe",
              [](auto& files) {
                files[0].header.tensors.push_back(
                    {.name = "model.layers.1.mlp.experts.down_proj", .dtype = "BF16", .shape = {3, 8, 5}});
              }),
      {"weight_files_c1: 3 tensors in more than one place", "experts.2.down_proj.weight"});
}

TEST(WeightFilesSpec, C2AndC3EveryMissingAndEveryForeignTensorIsNamed) {
  expect_says(refusal("llama_square",
                      [](auto& files) {
                        tensor_of(files, "lm_head.weight").name = "lm_head.bias";
                        tensor_of(files, "model.layers.1.self_attn.k_proj.weight").name = "k";
                      }),
              {"weight_files_c2: 2 tensors of the model missing", "model.layers.1.self_attn.k_proj.weight",
               "lm_head.weight", "weight_files_c3: 2 tensors that the model does not have", "lm_head.bias"});
  // Of a stack every expert is missing, and only the first are listed.
  expect_says(
      refusal("mixtral_stacks",
              [](auto& files) { files[0].header.tensors.erase(files[0].header.tensors.begin() + 2); }),
      {"weight_files_c2"});
}

TEST(WeightFilesSpec, C4AnotherShapeIsNamedWithBothAndATransposedOneAsSuch) {
  expect_says(refusal("qwen3",
                      [](auto& files) {
                        tensor_of(files, "model.layers.0.mlp.up_proj.weight").shape = {11, 8};
                        tensor_of(files, "model.norm.weight").shape = {12};
                      }),
              {"weight_files_c4: 2 tensors of another shape",
               "model.layers.0.mlp.up_proj.weight is [11, 8], the model's is [8, 11] (transposed?)",
               "model.norm.weight is [12], the model's is [11];"});
  expect_says(refusal("olmoe_stacks",
                      [](auto& files) {
                        tensor_of(files, "model.layers.0.mlp.experts.gate_up_proj").shape = {3, 8, 10};
                      }),
              {"weight_files_c4: 1 tensor of another shape", "[3, 8, 10], the model's is [3, 10, 8]"});
}

TEST(WeightFilesSpec, C5ATypeThatNoWeightHasIsNamed) {
  expect_says(refusal("mistral", [](auto& files) { tensor_of(files, "model.norm.weight").dtype = "I8"; }),
              {"weight_files_c5: 1 tensor of a type that no weight has: model.norm.weight (I8)"});
}

TEST(WeightFilesSpec, TablesOfAnglesAreIgnoredByName) {
  WeightFolderInMemory folder("llama_square");
  folder.files[0].header.tensors.push_back(
      {.name = "model.layers.0.self_attn.rotary_emb.inv_freq", .dtype = "F32", .shape = {2}});
  EXPECT_EQ(find_weights(folder.model, folder.inventory, folder.files, "").ignored,
            std::vector<std::string>{"model.layers.0.self_attn.rotary_emb.inv_freq"});
}

/// Of a tied model the head alone is enough; both are given back to be compared.
TEST(WeightFilesSpec, ATiedHeadStandsForTheEmbedding) {
  WeightFolderInMemory folder("llama_f16_tied");
  safetensors::Tensor& embedding = tensor_of(folder.files, "model.embed_tokens.weight");
  safetensors::Tensor head = embedding;
  head.name = "lm_head.weight";
  folder.files[0].header.tensors.push_back(head);
  const WeightSources both = find_weights(folder.model, folder.inventory, folder.files, "");
  ASSERT_EQ(both.head.size(), 1u);
  EXPECT_EQ(both.head[0].tensor, folder.files[0].header.tensors.size() - 1);
  embedding = folder.files[0].header.tensors.back();
  folder.files[0].header.tensors.pop_back();
  const WeightSources alone = find_weights(folder.model, folder.inventory, folder.files, "");
  EXPECT_TRUE(alone.head.empty());
}

TEST(WeightFilesSpec, C6AnIndexMustSayWhatTheFilesHold) {
  const WeightFolderInMemory folder("llama_f32_sharded");
  const std::string path = "weights/llama_f32_sharded/model.safetensors.index.json";
  const std::string index = tests::golden_bytes(path);
  check_index(index, folder.files, path);
  std::string wrong = index;
  const std::string from = "model-00001-of-00004";
  wrong.replace(wrong.find(from), from.size(), "model-00004-of-00004");
  const auto said = [&](const auto& call) {
    try {
      call();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  expect_says(said([&] { check_index(wrong, folder.files, path); }), {"weight_files_c6: 1 of its tensors"});
  EXPECT_NE(said([&] { files_of_index("{}", path); }), "accepted");
  EXPECT_NE(said([&] { files_of_index(R"({"weight_map": {}})", path); }), "accepted");
  for (const char* name : {"../b.safetensors", "sub/b.safetensors", "/b.safetensors", "..", ""})
    expect_says(
        said([&] { files_of_index(R"({"weight_map": {"a": ")" + std::string(name) + R"("}})", path); }),
        {"which is no file of the folder"});
}

/// What we write is what we read: names, files and index of transformers' own.
TEST(WeightFilesSpec, WhatIsWrittenIsReadBack) {
  for (const std::string& name : tests::weight_folders()) {
    SCOPED_TRACE(name);
    const WeightFolderInMemory folder(name);
    for (const std::int64_t most : {std::int64_t{1} << 40, std::int64_t{2000}, std::int64_t{1}}) {
      const auto files = files_to_write(folder.inventory, "BF16", most);
      const WeightSources sources = find_weights(folder.model, folder.inventory, files, name);
      check_index(index_to_write(files), files, name);
      std::size_t tensors = 0;
      for (const WeightFile& file : files) {
        const std::uint64_t bytes = file.header.tensors.back().end;
        EXPECT_TRUE(bytes <= static_cast<std::uint64_t>(most) || file.header.tensors.size() == 1);
        tensors += file.header.tensors.size();
      }
      EXPECT_EQ(tensors, folder.inventory.parameters.size());
      EXPECT_EQ(files.size() == 1, most == std::int64_t{1} << 40);
      EXPECT_EQ(files.front().name,
                files.size() == 1 ? "model.safetensors" : "model-00001-of-" + files.back().name.substr(15));
      if (most == 1) {
        EXPECT_EQ(files.size(), folder.inventory.parameters.size());
      }
      for (const WeightFile& file : files)
        for (const safetensors::Tensor& tensor : file.header.tensors)
          EXPECT_EQ(tensor.dtype, tensor.name.ends_with("e_score_correction_bias") ? "F32" : "BF16");
    }
  }
}

}  // namespace
}  // namespace assay::spec::weight_files_test
