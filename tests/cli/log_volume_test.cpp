// labels: cli
// Rank 0 speaks for all: what a step adds to the terminal and to the record does not grow with the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::log_volume_test {
namespace {

struct Volume {
  std::ptrdiff_t printed = 0, recorded = 0;  ///< lines
};

TEST(LogVolumeProgram, AStepIsOneLineWhateverTheRanks) {
  if (!std::filesystem::exists(tests::binary_dir() + "/bin/assay-train"))
    GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  const tests::Scratch scratch;
  constexpr int few = 4, many = 9;
  std::map<int, std::ptrdiff_t> printed, recorded;
  for (const int ranks : {1, 2, 4}) {
    std::map<int, Volume> volumes;
    for (const int steps : {few, many}) {
      const std::string folder =
          (scratch.path() / (std::to_string(ranks) + "-" + std::to_string(steps))).string();
      const auto outcome = tests::shell(
          tests::assay_path() + " train --ranks " + std::to_string(ranks) +
              " compute.device=cpu compute.threads=1 batch.sequences=4 batch.sequence_length=32 "
              "schedule.kind=constant schedule.warmup_steps=1 sample.sentences=0 run.directory=" +
              folder + " train.steps=" + std::to_string(steps),
          120);
      ASSERT_EQ(outcome.code, 0) << outcome.messages;
      std::ifstream record(folder + "/run.jsonl");
      for (std::string line; std::getline(record, line);) ++volumes[steps].recorded;
      volumes[steps].printed = std::count(outcome.output.begin(), outcome.output.end(), '\n') +
                               std::count(outcome.messages.begin(), outcome.messages.end(), '\n');
    }
    printed[ranks] = volumes[many].printed - volumes[few].printed;
    recorded[ranks] = volumes[many].recorded - volumes[few].recorded;
  }
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EQ(printed[ranks], many - few) << ranks;
    EXPECT_EQ(recorded[ranks], many - few) << ranks;
  }
}

}  // namespace
}  // namespace assay::log_volume_test
