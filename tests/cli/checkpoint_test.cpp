// labels: cli
// `assay checkpoint` and `assay train model.weights=FOLDER` as people run them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "spec/text/json.hpp"
#include "tests/cli/golden_python.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::checkpoint_cli_test {
namespace {

namespace fs = std::filesystem;
using impl::cli::Outcome;
using tests::assay;
using tests::shell;
using tests::weight_folder;

void expect_refused(const Outcome& outcome, ExitCode code, const std::string& says) {
  EXPECT_EQ(outcome.code, static_cast<int>(code)) << outcome.messages;
  EXPECT_NE(outcome.messages.find(says), std::string::npos) << outcome.messages;
  EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
}

TEST(CheckpointVerb, RefusesWhatItDoesNotDo) {
  expect_refused(assay({"checkpoint"}), ExitCode::usage, "does show, verify, export or reshard; name one");
  expect_refused(assay({"checkpoint", "exprot", "a", "b"}), ExitCode::usage, "did you mean \"export\"?");
  expect_refused(assay({"checkpoint", "show"}), ExitCode::usage, "takes one folder");
  expect_refused(assay({"checkpoint", "show", "a", "--dtype", "bf16"}), ExitCode::usage,
                 "--dtype is an option of `assay checkpoint export` alone");
  expect_refused(assay({"checkpoint", "export", "a"}), ExitCode::usage, "takes a CHECKPOINT and the FOLDER");
  expect_refused(assay({"checkpoint", "export", "a", "b", "--dtype", "bf61"}), ExitCode::usage,
                 "did you mean \"bf16\"?");
  expect_refused(assay({"checkpoint", "verify", "/no/such"}), ExitCode::bad_data, "holds no checkpoint");
}

TEST(CheckpointVerb, WeightsChangeNoTimeOfAStep) {
  expect_refused(
      assay({"bench", "step", "model.weights=" + weight_folder("qwen3"), "batch.sequence_length=8"}),
      ExitCode::usage, "`assay bench step` measures with initial weights");
}

TEST(CheckpointVerb, ShowsAndVerifiesAFolderOfWeights) {
  const Outcome shown = assay({"checkpoint", "show", weight_folder("qwen3_moe_stacks")});
  ASSERT_EQ(shown.code, 0) << shown.messages;
  for (const char* word : {"Hugging Face weights", "qwen3_moe_stacks (qwen3_moe)", "F32 (", "without effect",
                           "router_aux_loss_coef"})
    EXPECT_NE(shown.output.find(word), std::string::npos) << shown.output;
  const Outcome verified = assay({"checkpoint", "verify", weight_folder("qwen3_moe_stacks")});
  EXPECT_EQ(verified.code, 0) << verified.messages;
  EXPECT_NE(verified.output.find("all finite"), std::string::npos) << verified.output;
}

class WeightsProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    // Ids below the vocabularies of all folders.
    std::ofstream tokens(scratch.path() / "tokens.bin", std::ios::binary);
    for (int i = 0; i < 400; ++i) tokens << static_cast<char>(i * i % 7) << '\0';
    std::ofstream(scratch.path() / "tokenizer.json") << "{}";
  }
  std::string at(const std::string& name) const { return (scratch.path() / name).string(); }
  Outcome train(const std::string& name, const std::string& more) const {
    return shell(
        tests::assay_path() +
            " train compute.device=cpu compute.threads=1 batch.sequences=4 batch.sequence_length=6 "
            "train.steps=3 optimizer.learning_rate=3e-3 schedule.warmup_steps=1 schedule.decay_steps=1 "
            "data.dtype=uint16 "
            "data.paths=" +
            at("tokens.bin") + " run.directory=" + at(name) + " " + more,
        120);
  }

  tests::Scratch scratch;
};

/// What transformers ignores is no reason to refuse: it is listed once, and the model is the same.
TEST_F(WeightsProgram, KeysThatTransformersDoesNotKnowAreListedOnce) {
  fs::copy(weight_folder("llama_square"), at("hf"));
  const auto with = [&](const std::string& more) {
    std::ifstream file(weight_folder("llama_square") + "/config.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.insert(text.find('{') + 1, more);
    std::ofstream(at("hf/config.json")) << text;
  };
  const Outcome plain = train("plain", "model.weights=" + at("hf"));
  ASSERT_EQ(plain.code, 0) << plain.messages;
  with(
      "\"is_llama_config\": true, \"transformers.js_config\": {\"dtype\": \"q4\"}, "
      "\"_attn_implementation_autoset\": true, \"neftune_noise_alpha\": 5.0,");
  const Outcome trained = train("run", "model.weights=" + at("hf"));
  ASSERT_EQ(trained.code, 0) << trained.messages;
  EXPECT_NE(
      trained.messages.find(
          "config.json, without effect on training: is_llama_config = true (no option of a \"llama\" in "
          "transformers), transformers.js_config = an object (no option of a \"llama\" in transformers), "
          "_attn_implementation_autoset = true (no option of a \"llama\" in transformers), "
          "neftune_noise_alpha = 5.0 (no option of a \"llama\" in transformers) [model_options]\n"),
      std::string::npos)
      << trained.messages;
  EXPECT_EQ(trained.messages.find("neftune"), trained.messages.rfind("neftune"));
  const auto loss = [&](const std::string& name) {
    return spec::record::assemble(spec::record::read_events(at(name))).steps.back().loss;
  };
  EXPECT_EQ(loss("run"), loss("plain"));
  with("\"attention_chunk_size\": 8, \"is_causal\": false, ");
  const Outcome refused = train("other", "model.weights=" + at("hf"));
  EXPECT_EQ(refused.code, 2) << refused.messages;
  for (const char* word : {"\"attention_chunk_size\" = 8 of a \"llama\" changes what is computed",
                           "it passes as null\n", "\"is_causal\" = false", "it passes as true\n"})
    EXPECT_NE(refused.messages.find(word), std::string::npos) << word << "\n" << refused.messages;
}

/// num_nextn_predict_layers = 1 without such weights is what transformers 5 writes.
TEST_F(WeightsProgram, ADeepSeekTrainsWithoutTheBlockThatItsFolderDoesNotHold) {
  fs::copy(weight_folder("deepseek_v3"), at("hf"));
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::ifstream file(at("hf/config.json"));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.replace(text.find(from), from.size(), to);
    file.close();
    std::ofstream(at("hf/config.json")) << text;
  };
  edit("\"num_nextn_predict_layers\": 0", "\"num_nextn_predict_layers\": 1");
  for (const char* word : {"model.weights=", "model.name="}) {
    const Outcome trained = train(std::string("run-") + word[6], word + at("hf"));
    ASSERT_EQ(trained.code, 0) << trained.messages;
    EXPECT_NE(
        trained.messages.find("num_nextn_predict_layers = 1 (the model is trained without that block of "
                              "multi-token prediction, as transformers builds it)"),
        std::string::npos)
        << trained.messages;
  }
  EXPECT_NE(assay({"checkpoint", "show", at("hf")})
                .output.find("num_nextn_predict_layers = 1 (the model is trained"),
            std::string::npos);
  // A folder that holds the block behind the model's last: here one of its two layers.
  edit("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  const Outcome refused = train("refused", "model.weights=" + at("hf"));
  EXPECT_EQ(refused.code, 65) << refused.messages;
  EXPECT_NE(
      refused.messages.find("model.layers.1 is a block of multi-token prediction, which is not trained: "
                            "transformers' save_pretrained writes the folder without it"),
      std::string::npos)
      << refused.messages;
}

TEST_F(WeightsProgram, TrainsFromWeightsAndResumesWithoutTheirFolder) {
  fs::copy(weight_folder("qwen3"), at("hf"));
  const Outcome trained = train("run", "model.weights=" + at("hf"));
  ASSERT_EQ(trained.code, 0) << trained.messages;
  for (const char* word :
       {"weights from ", "BF16", "that of trained weights: below log V = 2.6391", "weights from "})
    EXPECT_NE(trained.messages.find(word), std::string::npos) << word << "\n" << trained.messages;
  // use_cache and pretraining_tp are without consequence, and nothing else is left over.
  EXPECT_EQ(trained.messages.find("[model_options]"), std::string::npos) << trained.messages;
  const auto run = spec::record::assemble(spec::record::read_events(at("run")));
  ASSERT_TRUE(run.weights);
  EXPECT_EQ(run.weights->path, at("hf"));
  EXPECT_EQ(run.weights->types, "BF16");
  EXPECT_EQ(run.weights->content.size(), 32u);
  EXPECT_FALSE(run.start.expected_first_loss);
  const Outcome audited = assay({"audit", at("run")});
  EXPECT_EQ(audited.code, 0) << audited.output;

  fs::remove_all(at("hf"));
  const Outcome resumed = train(
      "run", "model.weights=" + at("hf") + " train.steps=5 checkpoint.resume=auto schedule.decay_steps=2");
  EXPECT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_NE(resumed.messages.find("resuming after step 3"), std::string::npos) << resumed.messages;
  expect_refused(train("other", "model.weights=" + at("hf")), ExitCode::usage, "no model and no file");

  const Outcome shown = assay({"checkpoint", "show", at("run")});
  EXPECT_NE(shown.output.find("started from  " + at("hf")), std::string::npos) << shown.output;
  EXPECT_NE(assay({"checkpoint", "verify", at("run")}).output.find("every hash of 1 file, "),
            std::string::npos);
}

/// A checkpoint in other files is whole, and a run goes on from it as from the first.
TEST_F(WeightsProgram, GoesOnFromAReshardedCheckpoint) {
  const Outcome trained =
      train("run", "model.name=" + weight_folder("qwen3") + " checkpoint.every=2 checkpoint.keep=9");
  ASSERT_EQ(trained.code, 0) << trained.messages;
  const std::string second = at("run") + "/checkpoints/step_00000002";
  const Outcome resharded = assay({"checkpoint", "reshard", second, at("three"), "--files", "3"});
  ASSERT_EQ(resharded.code, 0) << resharded.messages;
  EXPECT_NE(resharded.output.find("in 3 files"), std::string::npos) << resharded.output;
  EXPECT_NE(assay({"checkpoint", "verify", at("three")}).output.find("every hash of 3 files"),
            std::string::npos);
  expect_refused(assay({"checkpoint", "reshard", second, at("three")}), ExitCode::usage,
                 "exists; give a folder");
  expect_refused(assay({"checkpoint", "reshard", second}), ExitCode::usage,
                 "takes a CHECKPOINT and the FOLDER");
  expect_refused(assay({"checkpoint", "show", second, "--files", "3"}), ExitCode::usage,
                 "--files is an option of `assay checkpoint reshard` alone");
  const auto loss_of_third = [&](const std::string& name) {
    return spec::record::assemble(spec::record::read_events(at(name))).steps.back().loss;
  };
  const Outcome resumed =
      train("again", "model.name=" + weight_folder("qwen3") + " checkpoint.resume=" + at("three"));
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_EQ(loss_of_third("again"), loss_of_third("run"));
}

TEST_F(WeightsProgram, RefusesBeforeAnythingIsWritten) {
  fs::copy(weight_folder("llama_f32_sharded"), at("hf"));
  fs::remove(at("hf") + "/model-00002-of-00004.safetensors");
  const Outcome missing = train("run", "model.weights=" + at("hf"));
  expect_refused(missing, ExitCode::bad_data, "model-00002-of-00004.safetensors");
  expect_refused(train("run", "model.name=tiny-llama model.weights=" + weight_folder("qwen3")),
                 ExitCode::bad_data, "of the model missing: ");
  expect_refused(train("run", "model.init_std=0.1 model.weights=" + weight_folder("qwen3")), ExitCode::usage,
                 "error: model.init_std = 0.1 has no effect here");
  EXPECT_FALSE(fs::exists(at("run")));
}

/// model.name alone keeps meaning the shape: weights are initial ones.
TEST_F(WeightsProgram, ANameAloneMeansTheShape) {
  const Outcome outcome = train("run", "model.name=" + weight_folder("qwen3"));
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  const auto run = spec::record::assemble(spec::record::read_events(at("run")));
  EXPECT_FALSE(run.weights);
  EXPECT_TRUE(run.start.expected_first_loss);
}

/// Models of every class with reals that are whole, and a window as long as the context.
std::vector<spec::ModelSpec> exported_models() {
  std::vector<spec::ModelSpec> models;
  for (const std::string folder : {"llama_f32_sharded", "mistral", "qwen2", "qwen3", "mixtral",
                                   "qwen3_moe_stacks", "olmoe", "deepseek_v3"}) {
    spec::ModelSpec& m = models.emplace_back(spec::find_model(weight_folder(folder)));
    m.name = folder, m.norm_eps = 1, m.init_std = 1, m.rope_theta = 100;
    if (m.rope_scaling) m.rope_scaling->factor = 4;
    if (m.latent) m.experts->scaling_factor = 1;
  }
  spec::ModelSpec& window = models.emplace_back(models.front());
  window.name = "as_long_as_the_context", window.window = window.context;
  spec::ModelSpec& width =
      models.emplace_back(models.front());  // 4 heads: a Llama that transformers calls a Mistral
  width.name = "odd_width", width.width += 1;
  return models;
}

/// What is exported loads in transformers with no missing or unexpected key, and gives the same loss.
TEST_F(WeightsProgram, ExportsWhatTransformersLoads) {
  std::string folders;
  const auto trains_and_exports = [&](const std::string& name, const std::string& from,
                                      const std::string& more) {
    SCOPED_TRACE(name);
    const std::string run = at(name + "-run"), out = at(name + "-out");
    const Outcome trained = train(name + "-run", "compute.dtype=f64 " + from);
    ASSERT_EQ(trained.code, 0) << trained.messages;
    const Outcome exported =
        assay({"checkpoint", "export", run, out, "--dtype", "fp64", "--shard-bytes", "4000"});
    ASSERT_EQ(exported.code, 0) << exported.messages;
    EXPECT_NE(exported.output.find("1 files of " + scratch.path().string()), std::string::npos)
        << exported.output;
    for (const char* file : {"config.json", "generation_config.json", "tokenizer.json"})
      EXPECT_TRUE(fs::exists(out + "/" + file)) << file;
    // One step reads all 66 samples of the file, in whatever order: its loss is the mean over the file.
    const Outcome again = train(name + "-again",
                                "compute.dtype=f64 batch.sequences=66 train.steps=1 "
                                "schedule.warmup_steps=0 schedule.decay_steps=0 " +
                                    more + "model.weights=" + out);
    ASSERT_EQ(again.code, 0) << again.messages;
    const auto first = spec::record::assemble(spec::record::read_events(at(name + "-again"))).steps.at(0);
    folders += " " + out + " " + spec::json_number(first.loss);
  };
  for (const char* name : {"qwen3", "mixtral"})
    trains_and_exports(name, "model.weights=" + weight_folder(name), "");
  EXPECT_TRUE(fs::exists(at("qwen3-out") + "/model.safetensors.index.json"));
  EXPECT_EQ(assay({"checkpoint", "verify", at("qwen3-out")}).code, 0);
  for (const spec::ModelSpec& model : exported_models()) {
    std::ofstream(at(model.name + ".toml")) << spec::to_toml(model);
    trains_and_exports(model.name + "-whole", "model.name=" + at(model.name + ".toml"), "");
  }
  if (const std::string reason = tests::lacks_package("transformers"); !reason.empty())
    GTEST_SKIP() << reason;
  const Outcome loaded =
      tests::run_golden_python("load_in_transformers.py " + at("tokens.bin") + " 6" + folders, 300);
  EXPECT_EQ(loaded.code, 0) << loaded.messages;
}

}  // namespace
}  // namespace assay::checkpoint_cli_test
