// labels: unit golden fault
// Weights of Hugging Face transformers (golden/weights) into the trainer and out again.
#include "impl/checkpoint/import_weights.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/checkpoint/weight_folder.hpp"
#include "impl/generate/loaded_weights.hpp"
#include "impl/generate/text_codec.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/dump.hpp"
#include "spec/error.hpp"
#include "spec/model/trainable.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::impl::checkpoint::import_weights_test {
namespace {

namespace fs = std::filesystem;
using tests::weight_folder;
using tests::WeightFolderInMemory;

ParameterBuffers imported(const std::string& name, Dtype dtype, Dtype states = Dtype::f32) {
  const WeightFolderInMemory folder(name);
  ParameterBuffers buffers = allocate(folder.model, dtype, at::kCPU, states);
  import_weights(weight_folder(name), folder.model, buffers, *make_self_communicator());
  return buffers;
}

class ImportedWeights : public testing::TestWithParam<std::string> {};

/// Every value is the file's: exactly where the type is as wide, else rounded to nearest.
TEST_P(ImportedWeights, AreThoseOfTheFiles) {
  const WeightFolderInMemory folder(GetParam());
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    const ParameterBuffers buffers = imported(GetParam(), dtype);
    for (std::size_t i = 0; i < folder.inventory.parameters.size(); ++i) {
      const spec::Parameter& parameter = folder.inventory.parameters[i];
      const at::Tensor values = at::tensor(folder.values_of(i), at::kDouble).view(parameter.shape);
      if (const at::Tensor bias = router_bias_of(buffers, i); bias.defined()) {
        EXPECT_TRUE(at::equal(bias, values.to(bias.scalar_type()))) << parameter.name;
        continue;
      }
      for (const at::Tensor* buffer : {&buffers.master, &buffers.weights})
        EXPECT_TRUE(
            at::equal(view(*buffer, buffers.inventory.parameters[i]), values.to(buffer->scalar_type())))
            << parameter.name << " " << static_cast<int>(dtype);
    }
    EXPECT_EQ(buffers.moment1.count_nonzero().item<std::int64_t>(), 0);
    EXPECT_EQ(buffers.moment2.count_nonzero().item<std::int64_t>(), 0);
  }
}

/// Import, checkpoint, export in the type of the files: the same bits, whatever the files' number.
TEST_P(ImportedWeights, ComeOutBitForBit) {
  const WeightFolderInMemory folder(GetParam());
  const std::string dtype = folder.tensor(1).dtype;
  for (const auto& [state, states] :
       {std::pair(Dtype::f32, Dtype::f32), std::pair(Dtype::bf16, Dtype::bf16)}) {
    if (state == Dtype::bf16 && dtype != "BF16") continue;  // it holds no more than that
    const tests::Scratch scratch;
    spec::RunConfig config;
    config.model = "gone";
    const Saved saved = save(
        scratch.path().string(), imported(GetParam(), state, states),
        {.step = 3, .tokens = 9, .config = spec::dump_toml(config), .model = spec::to_toml(folder.model)}, 2);
    for (const std::int64_t most : {std::int64_t{1} << 40, std::int64_t{1000}}) {
      const fs::path out = scratch.path() / std::to_string(most);
      const Exported exported = export_weights(
          {.checkpoint = saved.path, .folder = out.string(), .dtype = dtype, .most_bytes = most});
      EXPECT_EQ(exported.step, 3);
      const spec::ModelSpec model = spec::find_model(out.string());
      const spec::Inventory inventory = spec::inventory(model);
      const WeightFolder again = open_weights(out.string());
      const spec::WeightSources sources = sources_of(again, model, inventory);
      for (std::size_t i = 0; i < inventory.parameters.size(); ++i) {
        const auto& tensor = again.tensor(sources.of[i]);
        if (tensor.dtype != folder.tensor(i).dtype) continue;  // corrections of routers: F32 for BF16
        std::vector<std::byte> bytes(tensor.end - tensor.begin);
        again.inputs[sources.of[i].file].read(again.first_byte(sources.of[i]), bytes);
        const auto wanted = folder.bytes_of(i);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), wanted.begin(), wanted.end())) << tensor.name;
      }
      EXPECT_EQ(verify_checkpoint(out.string()).size(), 1u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ImportedWeights, testing::ValuesIn(tests::weight_folders()),
                         [](const auto& name) { return name.param; });

/// Sequences of the golden file's ids.
class GoldenSamples final : public data::SampleSource {
 public:
  explicit GoldenSamples(const tests::GoldenFile& golden) : ids_(golden.ids("ids")) {}
  std::int64_t samples() const override { return 2; }
  std::int64_t sequence_length() const override { return 4; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    for (std::size_t t = 0; t < ids.size(); ++t)
      ids[t] = static_cast<std::int32_t>(ids_[static_cast<std::size_t>(sample) * 6 + t]);
  }
  std::string description() const override { return "golden"; }

 private:
  std::vector<std::int64_t> ids_;
};

spec::RunConfig config_for(const std::string& name) {
  spec::RunConfig config;
  config.model = config.weights = weight_folder(name);
  config.dtype = Dtype::f64, config.sequences = 2, config.micro = 1, config.sequence_length = 4;
  config.steps = 3, config.warmup_steps = 1, config.decay_steps = 1;
  return config;
}

class TrainedWeights : public testing::TestWithParam<std::string> {};

/// The trainer's forward pass with imported weights gives transformers' logits.
TEST_P(TrainedWeights, GiveTheLogitsOfTransformers) {
  const c10::InferenceMode no_autograd;
  const auto golden = tests::load_golden("weights/" + GetParam() + ".json");
  spec::RunConfig config = config_for(GetParam());
  config.sequence_length = 6;
  const spec::ModelSpec model = spec::find_model(config.model);
  if (const std::string feature = spec::untrainable_feature(model); !feature.empty())
    GTEST_SKIP() << "the trainer does not compute " << feature;
  const auto alone = make_self_communicator();
  run::Trainer trainer(config, model, spec::batch_of(2, 1, 1), at::kCPU,
                       std::make_shared<GoldenSamples>(golden), *alone);
  trainer.import_weights(config.weights);
  const at::Tensor ids = at::tensor(golden.ids("ids"), at::kLong);
  const at::Tensor logits = trainer.model().logits(
      {.B = 2, .T = 6, .inputs = ids, .targets = {}, .positions = {}, .documents = {}});
  const tests::Values wanted = golden.tensor("logits");
  const at::Tensor ours = logits.contiguous().view({-1});
  const tests::Values values{wanted.shape,
                             {ours.const_data_ptr<double>(), ours.const_data_ptr<double>() + ours.numel()}};
  ASSAY_EXPECT_CLOSE(values, wanted, tests::Allowed::relative(1e-9));
}

/// Ranks that hold parts read their parts: each layout trains the same steps, and tells the same content.
TEST_P(TrainedWeights, AreTheSameInEveryLayout) {
  const auto golden = tests::load_golden("weights/" + GetParam() + ".json");
  const spec::ModelSpec model = spec::find_model(weight_folder(GetParam()));
  if (!spec::untrainable_feature(model).empty()) GTEST_SKIP() << spec::untrainable_feature(model);
  const auto steps = [&](int ranks, spec::DataParallel data, std::int64_t tensor) {
    spec::RunConfig config = config_for(GetParam());
    config.data_parallel = data, config.tensor_ranks = tensor;
    std::pair<std::string, std::vector<double>> out;
    tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
      const c10::InferenceMode no_autograd;
      run::Trainer trainer(config, model, spec::batch_of(2, 1, ranks / tensor), at::kCPU,
                           std::make_shared<GoldenSamples>(golden), communicator);
      const auto from = trainer.import_weights(config.weights);
      trainer.start_after(0);
      std::vector<double> losses;
      for (int step = 0; step < 2; ++step) losses.push_back(trainer.step(false).value().result.cross_entropy);
      if (communicator.rank() == 0) out = {from.content, losses};
    });
    return out;
  };
  const auto alone = steps(1, spec::DataParallel::replicate, 1);
  EXPECT_EQ(alone.first.size(), 32u);
  std::vector<std::tuple<int, spec::DataParallel, std::int64_t>> layouts = {
      {2, spec::DataParallel::replicate, 1},
      {2, spec::DataParallel::zero1, 1},
      {2, spec::DataParallel::shard, 1}};
  if (!model.experts && model.ffn % 2 == 0) layouts.emplace_back(2, spec::DataParallel::replicate, 2);
  for (const auto& [ranks, data, tensor] : layouts) {
    const auto these = steps(ranks, data, tensor);
    EXPECT_EQ(these.first, alone.first);
    for (std::size_t step = 0; step < 2; ++step)
      EXPECT_NEAR(these.second.at(step), alone.second.at(step), 1e-11 * alone.second.at(step))
          << static_cast<int>(data) << " tensor " << tensor;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TrainedWeights, testing::ValuesIn(tests::weight_folders()),
                         [](const auto& name) { return name.param; });

/// A copy of a golden folder that may be damaged.
class DamagedWeights : public testing::Test {
 protected:
  void copy(const std::string& name) {
    folder_ = scratch_.path() / name;
    fs::copy(weight_folder(name), folder_);
  }
  std::string refusal() const {
    const spec::ModelSpec model = spec::find_model(folder_.string());
    std::string said = "accepted";
    ParameterBuffers buffers = allocate(model, Dtype::f32, at::kCPU);
    try {
      import_weights(folder_.string(), model, buffers, *make_self_communicator());
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      said = error.what();
    }
    if (said != "accepted") {
      EXPECT_THROW(verify_checkpoint(folder_.string()), UserError) << said;
    }
    return said;
  }
  void expect_said(const std::vector<std::string>& words) const {
    const std::string said = refusal();
    for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << said;
  }
  /// Overwrites the first bytes of a tensor.
  void write_into(const std::string& file, const std::string& tensor, const std::vector<char>& bytes) const {
    const std::string path = (folder_ / file).string();
    const WeightFolder weights = open_weights(folder_.string());
    for (std::size_t f = 0; f < weights.files.size(); ++f)
      for (const auto& each : weights.files[f].header.tensors)
        if (weights.files[f].name == file && each.name == tensor) {
          std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
          out.seekp(static_cast<std::streamoff>(weights.files[f].header.data_offset + each.begin));
          out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        }
  }

  tests::Scratch scratch_;
  fs::path folder_;
};

TEST_F(DamagedWeights, AWholeFolderIsAccepted) {
  copy("llama_f32_sharded");
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(DamagedWeights, AMissingFileIsNamed) {
  copy("llama_f32_sharded");
  fs::remove(folder_ / "model-00003-of-00004.safetensors");
  expect_said({"model-00003-of-00004.safetensors", "No such file", "not whole"});
}

TEST_F(DamagedWeights, AFileThatIsCutOffIsNamed) {
  copy("qwen3");
  const fs::path file = folder_ / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 2);
  expect_said({"model.safetensors: safetensors_c8", "fetch it anew"});
  fs::resize_file(file, 5);
  expect_said({"model.safetensors: safetensors_c1"});
}

TEST_F(DamagedWeights, C6AFileOfAnotherFolderIsNamed) {
  copy("llama_f32_sharded");
  fs::remove(folder_ / "model-00002-of-00004.safetensors");
  fs::copy(folder_ / "model-00001-of-00004.safetensors", folder_ / "model-00002-of-00004.safetensors");
  expect_said({"weight_files_c6"});
}

/// transformers loads model.safetensors and does not read the index.
TEST_F(DamagedWeights, C9TwoModelsInOneFolderAreNamed) {
  copy("llama_f32_sharded");
  fs::copy(folder_ / "model-00001-of-00004.safetensors", folder_ / "model.safetensors");
  expect_said({"weight_files_c9", "model.safetensors, which transformers loads",
               "model-00001-of-00004.safetensors of model.safetensors.index.json"});
  EXPECT_THROW(show_checkpoint(folder_.string()), UserError);
  EXPECT_THROW(generate::LoadedWeights(generate::find_weights(folder_.string()), at::kFloat, at::kCPU),
               UserError);
  // An index of that file alone, as some programs write it, is no second model.
  copy("qwen3");
  std::string index;
  const WeightFolder single = open_weights(folder_.string());
  for (const auto& tensor : single.files[0].header.tensors)
    index += (index.empty() ? "" : ", ") + ("\"" + tensor.name + "\": \"model.safetensors\"");
  std::ofstream(folder_ / "model.safetensors.index.json")
      << "{\"metadata\": {}, \"weight_map\": {" + index + "}}";
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(DamagedWeights, C8AValueThatIsNotFiniteIsNamed) {
  copy("mistral");
  write_into("model.safetensors", "model.layers.1.mlp.up_proj.weight", {'\x80', '\x7f'});  // +inf in BF16
  expect_said({"weight_files_c8: model.layers.1.mlp.up_proj.weight"});
}

TEST_F(DamagedWeights, C7ATiedHeadWithOtherValuesIsRefused) {
  copy("qwen2");
  const std::string path = (folder_ / "model.safetensors").string();
  // The same file with a head, first the embedding's bytes, then others.
  for (const bool same : {true, false}) {
    const WeightFolderInMemory folder("qwen2");
    spec::safetensors::Header header = folder.files[0].header;
    const auto embedding = header.at("model.embed_tokens.weight");
    const std::uint64_t end = header.tensors.back().end;
    header.tensors.push_back(
        {"lm_head.weight", embedding.dtype, embedding.shape, end, end + embedding.end - embedding.begin});
    std::string bytes = spec::safetensors::serialize(header);
    bytes += folder.bytes[0].substr(folder.files[0].header.data_offset);
    std::string head = folder.bytes[0].substr(folder.files[0].header.data_offset + embedding.begin,
                                              embedding.end - embedding.begin);
    if (!same) head[4] = static_cast<char>(head[4] ^ 1);
    std::ofstream(path, std::ios::binary) << bytes + head;
    if (same) {
      EXPECT_EQ(refusal(), "accepted");
    } else {
      expect_said({"weight_files_c7", "lm_head.weight", "tie_word_embeddings"});
    }
  }
}

TEST_F(DamagedWeights, WhatIsNoFolderOfWeightsIsToldApart) {
  copy("qwen3");
  fs::remove(folder_ / "model.safetensors");
  expect_said({"holds neither model.safetensors nor model.safetensors.index.json"});
  std::ofstream(folder_ / "pytorch_model.bin") << "PK";
  expect_said({"pytorch_model.bin, a pickle"});
  EXPECT_THROW(open_weights((folder_ / "config.json").string()), UserError);
}

/// Text of a run is in the tokens of the tokenizer that it began with.
TEST_F(DamagedWeights, AnotherTokenizerThanTheRunsIsRefused) {
  const WeightFolderInMemory folder("qwen3");
  const std::string tokenizer = scratch_.write("tokenizer.json", "{}");
  spec::RunConfig config;
  config.data_paths = {(scratch_.path() / "tokens.bin").string()};
  State state{.step = 1,
              .tokens = 1,
              .config = spec::dump_toml(config),
              .data = {{data_file(tokenizer)}},
              .model = spec::to_toml(folder.model)};
  state.data->at(0).of = DataFile::tokenizer;
  const std::string path = save(scratch_.path().string(), imported("qwen3", Dtype::f32), state, 2).path;
  const auto exported = [&](const char* name) {
    return export_weights({.checkpoint = path,
                           .folder = (scratch_.path() / name).string(),
                           .dtype = "F32",
                           .most_bytes = 1 << 30});
  };
  EXPECT_EQ(exported("a").tokenizer, std::vector<std::string>{"tokenizer.json"});
  scratch_.write("tokenizer.json", "{ }");
  std::string why;
  for (const std::function<void()>& read : std::vector<std::function<void()>>{
           [&] { exported("b"); }, [&] { generate::codec_of(generate::find_weights(path), why); }}) {
    try {
      read();
      ADD_FAILURE() << "text of other tokens";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find(tokenizer + " is not the tokenizer of the run"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_FALSE(fs::exists(scratch_.path() / "b"));
}

/// A checkpoint that is damaged leaves no folder behind, nor does one that no class of transformers computes.
TEST_F(DamagedWeights, NothingIsLeftOfAnExportThatFails) {
  const WeightFolderInMemory folder("qwen3");
  ParameterBuffers buffers = imported("qwen3", Dtype::f32);
  view(buffers.master, buffers.inventory.parameters[1])[0] = 1e6;
  spec::RunConfig config;
  const State state{
      .step = 1, .tokens = 1, .config = spec::dump_toml(config), .model = spec::to_toml(folder.model)};
  const std::string path = save(scratch_.path().string(), buffers, state, 2).path;
  const fs::path out = scratch_.path() / "out";
  const auto said = [&](const std::string& dtype) -> std::string {
    try {
      export_weights({.checkpoint = path, .folder = out.string(), .dtype = dtype, .most_bytes = 1 << 30});
    } catch (const UserError& error) {
      return error.what();
    }
    return "exported";
  };
  EXPECT_NE(said("F16").find("holds 1e+06, which F16 cannot"), std::string::npos) << said("F16");
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(said("F32"), "exported");
  EXPECT_NE(said("F32").find("exists; give a folder that does not"), std::string::npos);
  fs::remove_all(out);
  const std::string damaged = path + "/rank-00000-of-00001.safetensors";
  std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(fs::file_size(damaged) / 3);  // weights come first
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  EXPECT_NE(said("BF16").find("checkpoint_c3: content differs from what was written, in tensor"),
            std::string::npos)
      << said("BF16");
  EXPECT_FALSE(fs::exists(out));
  for (const auto& entry : fs::directory_iterator(scratch_.path()))
    EXPECT_FALSE(entry.path().filename().string().ends_with(".partial")) << entry.path();
}

}  // namespace
}  // namespace assay::impl::checkpoint::import_weights_test
