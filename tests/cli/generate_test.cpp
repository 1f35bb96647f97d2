// labels: cli golden
// `assay generate` as people run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::generate_cli_test {
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

std::string joined(const std::vector<std::int64_t>& ids, const char* between) {
  std::string out;
  for (const std::int64_t id : ids) out += (out.empty() ? "" : between) + std::to_string(id);
  return out;
}

class Generate : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }
  tests::Scratch scratch;
};

TEST_F(Generate, IdsOfSeveralPromptsAreThoseOfTransformers) {
  const auto golden = tests::load_golden("greedy/qwen3_moe.json");
  std::vector<std::string> words = {"generate",      weight_folder("qwen3_moe"),
                                    "--temperature", "0",
                                    "--tokens",      "20",
                                    "--device",      "cpu",
                                    "--dtype",       "f64"};
  std::string wanted;
  for (const char* number : {"0", "1", "2"}) {
    words.insert(words.end(), {"--ids", joined(golden.ids(std::string("prompt_") + number), ",")});
    wanted += joined(golden.ids(std::string("new_") + number), " ") + "\n";
  }
  const Outcome done = assay(words);
  ASSERT_EQ(done.code, 0) << done.messages;
  EXPECT_EQ(done.output, wanted);
  EXPECT_NE(done.messages.find("f64 on cpu: 60 new tokens in "), std::string::npos) << done.messages;
}

TEST_F(Generate, TextGoesThroughTheTokenizersFile) {
  // The tokenizer of golden/tokenizers beside a model of its vocabulary.
  const fs::path folder = scratch.path() / "model";
  ASSERT_EQ(shell("cd " + scratch.path().string() + " && cp -r " + weight_folder("llama_square") +
                  " model && cp " + tests::source_dir() + "/golden/tokenizers/gpt2/tokenizer.json model/")
                .code,
            0);
  expect_refused(assay({"generate", folder.string(), "--prompt", "the", "--device", "cpu"}), ExitCode::usage,
                 "is not in the vocabulary of");
  std::ofstream(folder / "tokenizer.json") << "{}";
  const Outcome torn = assay({"generate", folder.string(), "--prompt", "the", "--device", "cpu"});
  EXPECT_EQ(torn.code, static_cast<int>(ExitCode::bad_data)) << torn.messages;
}

TEST_F(Generate, ARunOfTheDemoGoesOnWithItsGrammar) {
  const std::string run = (scratch.path() / "run").string();
  const Outcome trained =
      shell(tests::assay_path() +
                " train train.steps=2 compute.threads=1 compute.device=cpu sample.sentences=2 "
                "batch.sequences=4 batch.sequence_length=32 run.directory=" +
                run,
            120);
  ASSERT_EQ(trained.code, 0) << trained.messages;
  const Outcome done = assay({"generate", run, "--prompt", "a dog", "--tokens", "9", "--device", "cpu"});
  ASSERT_EQ(done.code, 0) << done.messages;
  EXPECT_EQ(done.output.rfind("a dog", 0), 0u) << done.output;
  EXPECT_NE(done.messages.find("/checkpoints/step_00000002, f32 on cpu: "), std::string::npos)
      << done.messages;
  EXPECT_EQ(assay({"generate", run, "--prompt", "a dog", "--tokens", "9", "--device", "cpu"}).output,
            done.output);
  EXPECT_NE(
      assay({"generate", run, "--prompt", "a dog", "--tokens", "9", "--seed", "2", "--device", "cpu"}).output,
      done.output);
  const Outcome json = assay({"generate", run + "/checkpoints/step_00000002", "--prompt", "a", "--prompt",
                              "b", "--tokens", "3", "--json", "--device", "cpu"});
  ASSERT_EQ(json.code, 0) << json.messages;
  EXPECT_NE(json.output.find("{\"prompt_ids\": [10, 98], \"ids\": ["), std::string::npos) << json.output;
  EXPECT_NE(json.output.find("\"prompt\": \"b\", \"text\": \""), std::string::npos) << json.output;
  EXPECT_EQ(assay({"generate", run, "--device", "cpu"}).code, 0) << "a sentence of the grammar";
  const std::string generate = tests::assay_path() + " generate " + run + " --tokens 9 --device cpu ";
  EXPECT_EQ(shell("printf 'a dog\\n' | " + generate + "--prompt -").output, done.output);
  // A control character, which once stood between prompts, is a part of one.
  const Outcome control = shell(generate + "--json --prompt \"$(printf 'a\\036b')\"");
  EXPECT_NE(control.output.find("{\"prompt_ids\": [10, 97, 30, 98], "), std::string::npos) << control.output;
  EXPECT_EQ(std::ranges::count(control.output, '{'), 2) << "one text: " << control.output;
  // A byte of the weights is another one: found, not generated from.
  for (const auto& entry : fs::recursive_directory_iterator(run + "/checkpoints/step_00000002"))
    if (entry.path().extension() == ".safetensors") {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const auto place = static_cast<std::streamoff>(fs::file_size(entry.path()) / 4);  // moments come later
      file.seekg(place);
      const char byte = static_cast<char>(file.get() ^ 0x40);
      file.seekp(place);
      file.put(byte);
    }
  EXPECT_EQ(assay({"generate", run, "--device", "cpu"}).code, static_cast<int>(ExitCode::bad_data));
}

TEST_F(Generate, RefusesInOneLine) {
  const std::string folder = weight_folder("qwen3");
  expect_refused(assay({"generate"}), ExitCode::usage, "takes one folder");
  expect_refused(assay({"generate", "no/such"}), ExitCode::usage, "\"no/such\" is no folder");
  expect_refused(assay({"generate", scratch.path().string(), "--ids", "1"}), ExitCode::bad_data,
                 "holds no checkpoint");
  expect_refused(assay({"generate", folder}), ExitCode::usage, "no prompt");
  expect_refused(assay({"generate", folder, "--prompt", "x"}), ExitCode::usage,
                 "no tokenizer.json is in " + folder);
  expect_refused(assay({"generate", folder, "--prompt", "x", "--ids", "1"}), ExitCode::usage, "not both");
  expect_refused(assay({"generate", folder, "--ids", "1,x"}), ExitCode::usage, "\"x\" is no token id");
  expect_refused(assay({"generate", folder, "--ids", "1,14"}), ExitCode::usage, "token id 14 of a prompt");
  expect_refused(assay({"generate", folder, "--ids", "1", "--tokens", "128"}), ExitCode::usage,
                 "exceed the context of \"qwen3\", 128 tokens");
  expect_refused(assay({"generate", folder, "--ids", "1", "--temperature", "-1"}), ExitCode::usage,
                 "--temperature \"-1\" must be a number from 0 to 100");
  expect_refused(assay({"generate", folder, "--ids", "1", "--top-p", "0"}), ExitCode::usage,
                 "--top-p \"0\" must be a number from above 0 to 1");
  expect_refused(assay({"generate", folder, "--prompt", "-", "--prompt=-"}), ExitCode::usage, "is read once");
  expect_refused(assay({"generate", folder, "--ids", "1", "--tokns", "4"}), ExitCode::usage, "did you mean");
}

TEST(GeneratePlan, ReadsRepeatedPrompts) {
  for (const impl::cli::Verb& verb : impl::cli::verbs()) {
    if (verb.name != "generate") continue;
    const auto plan = impl::cli::generate_plan(
        impl::cli::parse({weight_folder("qwen3"), "--prompt", "a, b", "--prompt=", "--prompt", "c d",
                          "--tokens", "7", "--seed", "3"},
                         verb.options, verb.name));
    EXPECT_EQ(plan.prompts, (std::vector<std::string>{"a, b", "", "c d"}));
    EXPECT_EQ(plan.most, 7);
    EXPECT_EQ(plan.seed, 3);
    const auto ids = impl::cli::generate_plan(
        impl::cli::parse({weight_folder("qwen3"), "--ids", "1, 2", "--ids", "3 4"}, verb.options, verb.name));
    EXPECT_EQ(ids.ids, (std::vector<std::vector<std::int64_t>>{{1, 2}, {3, 4}}));
  }
}

}  // namespace
}  // namespace assay::generate_cli_test
