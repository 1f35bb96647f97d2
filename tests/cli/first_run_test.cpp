// labels: cli
// The first minutes of somebody with a model and files of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::first_run_test {
namespace {

namespace fs = std::filesystem;
using impl::cli::Outcome;
using tests::shell;

class FirstRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    scratch.write("mine.toml", toml);
    fs::create_directories(at("shards"));
    for (const char* name : {"shards/b.bin", "shards/a.bin"}) {
      std::ofstream file(at(name), std::ios::binary);
      for (int i = 0; i < 200; ++i) file << static_cast<char>(i) << '\0';
    }
    scratch.write("shards/a.json", "{}");
  }
  std::string at(const std::string& name) const { return (scratch.path() / name).string(); }
  Outcome train(const std::string& words) const {
    return shell("cd " + scratch.path().string() + " && " + tests::assay_path() + " train " + words, 120);
  }
  auto run_of(const std::string& name) const {
    return spec::record::assemble(spec::record::read_events(at(name)));
  }

  static constexpr const char* toml =
      "name = 'mine'\nfamily = 'llama'\nlayers = 1\nvocab = 256\nwidth = 32\nheads = 2\nkv_heads = 1\n"
      "head_dim = 16\nffn = 48\ncontext = 64\ntied_embeddings = false\nqk_norm = false\nnorm_eps = 1e-5\n"
      "rope_theta = 10_000.0\n";
  tests::Scratch scratch;
};

TEST_F(FirstRun, WhatAModelOfOnesOwnHasToSayIsSaidAtOnce) {
  const Outcome outcome = train("model.name=mine.toml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.messages.find(
                "assay: error: model.name = \"mine.toml\" is a model of your own, and a run of it "
                "has to say:\n  data.paths=tokens.bin "),
            0u)
      << outcome.messages;
  for (const char* line :
       {"\n  train.steps=1000 ", "\n  batch.sequence_length=2048 ", "\n  optimizer.learning_rate=3e-4 "})
    EXPECT_NE(outcome.messages.find(line), std::string::npos) << outcome.messages;
  EXPECT_FALSE(fs::exists(at("runs")));
}

TEST_F(FirstRun, MistakesOfRecipeCommandLineAndModelAreSaidAtOnce) {
  scratch.write("bad.toml", "name = 'mine'\nfamily = 'lama'\nlayers = 1.5\nwidht = 8\n");
  scratch.write("r.toml",
                "[model]\nname = 'bad.toml'\n[train]\nstpes = 3\nseed = 'x'\n[profile]\nsteps = [3]\n");
  const Outcome outcome = train("r.toml optimizer.lr=1");
  EXPECT_EQ(outcome.code, 2);
  for (const char* line :
       {"\n  r.toml:4:1: unknown setting \"train.stpes\"", "\n  r.toml:5:8: train.seed must be an integer",
        "\n  argument \"optimizer.lr=1\": unknown setting", "\n  r.toml:7:9: profile.steps = ",
        "\n    optimizer.learning_rate=3e-4 ", "\n  bad.toml:2:10: family \"lama\" is not known",
        "\n  bad.toml:3:10: \"layers\" must be an integer", "\n  bad.toml:4:1: unknown key \"widht\""})
    EXPECT_NE(outcome.messages.find(line), std::string::npos) << line << "\n" << outcome.messages;
  EXPECT_FALSE(std::regex_search(outcome.messages, std::regex("[a-z]_c[0-9]"))) << outcome.messages;
}

TEST_F(FirstRun, FoldersPatternsTokensAndTheTypeAreRecordedAsTheyWere) {
  const Outcome outcome = train(
      "model.name=mine.toml data.paths=shards data.dtype=uint16 'eval.paths=shar*/b.*' batch.sequences=2 "
      "batch.sequence_length=16 train.tokens=0.1k optimizer.learning_rate=1e-3 compute.device=cpu "
      "compute.threads=1 run.directory=run");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_NE(outcome.messages.find("              shards/a.bin, shards/b.bin\n"), std::string::npos)
      << outcome.messages;
  const auto run = run_of("run");
  EXPECT_EQ(run.start.data.files, (std::vector<std::string>{"shards/a.bin", "shards/b.bin"}));
  EXPECT_EQ(run.start.steps, 4);  // 100 tokens, 32 a step
  EXPECT_EQ(run.steps.size(), 4u);
  const auto setting = [&](const std::string& name) {
    for (const auto& [key, value] : run.start.settings)
      if (key == name) return spec::toml_literal(value);
    return std::string();
  };
  EXPECT_EQ(setting("data.paths"), "[\"shards/a.bin\", \"shards/b.bin\"]");
  EXPECT_EQ(setting("eval.paths"), "[\"shards/b.bin\"]");
  EXPECT_EQ(setting("train.steps"), "4");
  EXPECT_EQ(setting("train.tokens"), "100");
  EXPECT_EQ(setting("compute.dtype"), "\"f32\"");  // auto, on a CPU
  // It goes on by what was recorded, and by tokens.
  const Outcome more = shell("cd " + scratch.path().string() + " && " + tests::assay_path() +
                                 " resume run --change train.tokens=160",
                             120);
  ASSERT_EQ(more.code, 0) << more.messages;
  EXPECT_EQ(run_of("run").steps.size(), 5u);
  const Outcome none = train("data.paths=shards/*.npy data.dtype=uint16");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.messages.find("data.paths: \"shards/*.npy\" matches no token file"), std::string::npos)
      << none.messages;
}

TEST_F(FirstRun, WhatIsReadOfBf16AloneIsRefusedWhereTheTypeComesToAnother) {
  const Outcome outcome = train(
      "model.name=mine.toml data.paths=[] batch.sequence_length=16 train.steps=1 "
      "optimizer.learning_rate=1e-3 "
      "compute.device=cpu compute.threads=1 optimizer.states=bf16");
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.messages.find(
                "optimizer.states = \"bf16\" has no effect here: it is read only when compute.dtype "
                "is \"bf16\""),
            std::string::npos)
      << outcome.messages;
}

}  // namespace
}  // namespace assay::first_run_test
