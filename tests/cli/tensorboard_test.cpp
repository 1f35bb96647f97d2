// labels: cli
// Event files of runs, read by TensorBoard itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/golden_python.hpp"
#include "tests/support/scratch.hpp"

namespace assay::tensorboard_cli_test {
namespace {

namespace fs = std::filesystem;
using impl::cli::Outcome;

/// By tag the steps and the values as they are printed.
using Curves = std::map<std::string, std::vector<std::pair<std::int64_t, float>>>;

class Tensorboard : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    if (const std::string reason = tests::lacks_package("tensorboard"); !reason.empty())
      GTEST_SKIP() << reason;
  }

  void train(const std::string& words) const {
    const Outcome outcome = tests::shell(
        tests::assay_path() + " train train.steps=6 batch.sequences=4 batch.sequence_length=32 " +
            "schedule.warmup_steps=1 schedule.decay_steps=2 compute.threads=1 compute.device=cpu " +
            "sample.sentences=0 eval.share=0.1 eval.every=2 log.tensorboard=on run.directory=" +
            folder.string() + " " + words,
        120);
    ASSERT_EQ(outcome.code, 0) << outcome.messages;
  }

  Curves curves() {
    const Outcome outcome = tests::run_golden_python("tensorboard_check.py " + folder.string(), 60);
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    EXPECT_NE(outcome.output.find("\ntext settings "), std::string::npos) << outcome.output;
    Curves all;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string tag, word;
      words >> tag;
      if (tag == "text") continue;
      while (words >> word) {
        const auto colon = word.find(':');
        all[tag].emplace_back(std::stoll(word), std::stof(word.substr(colon + 1)));
      }
    }
    return all;
  }

  /// What the record has of them.
  void expect_the_record() {
    const auto run = spec::record::assemble(spec::record::read_events(folder.string()));
    const Curves all = curves();
    Curves expected;
    for (const auto& step : run.steps) {
      const auto number = step.step;
      expected["loss/training"].emplace_back(number, static_cast<float>(step.loss));
      expected["optimizer/learning_rate"].emplace_back(number, static_cast<float>(step.learning_rate));
      expected["optimizer/gradient_norm"].emplace_back(number, static_cast<float>(step.gradient_norm));
      expected["speed/tokens_per_second"].emplace_back(number, static_cast<float>(step.tokens_per_second));
      expected["time/forward"].emplace_back(number, static_cast<float>(step.phases.forward));
    }
    for (const auto& validation : run.validations)
      expected["loss/validation"].emplace_back(validation.step, static_cast<float>(validation.loss));
    ASSERT_EQ(run.steps.size(), 6u);
    ASSERT_EQ(run.validations.size(), 3u);
    for (const auto& [tag, points] : expected) {
      const auto found = all.find(tag);
      ASSERT_NE(found, all.end()) << tag;
      EXPECT_EQ(found->second, points) << tag;
    }
  }

  tests::Scratch scratch;
  const fs::path folder = scratch.path() / "run";
};

TEST_F(Tensorboard, ReadsWhatTheRecordHas) {
  train("");
  expect_the_record();
}

/// Steps that were done and lost are there once, as they were done the second time.
TEST_F(Tensorboard, AResumedRunHasEachStepOnce) {
  train("checkpoint.every=2 checkpoint.keep=5");
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints"))
    if (entry.path().filename().string() == "step_00000002")
      ++kept;
    else if (entry.path().filename().string().starts_with("step_"))
      fs::remove_all(entry.path());
  ASSERT_EQ(kept, 1);
  train("checkpoint.every=2 checkpoint.keep=5 checkpoint.resume=auto");
  expect_the_record();
}

}  // namespace
}  // namespace assay::tensorboard_cli_test
