// labels: cli fault
// A few of the trials of ci/faults: one of each kind, and one killed from outside.
// docs/measurements/faults.md has a hundred.
#include <gtest/gtest.h>

#include <filesystem>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::faults_test {
namespace {

TEST(FaultsCli, ALostRankIsNamedAndAllOthersStop) {
  const std::string bin = tests::binary_dir() + "/bin";
  if (!std::filesystem::exists(bin + "/assay-train"))
    GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  const auto outcome = tests::shell("ASSAY_GPU_BIN=" + bin + " python3 " + tests::source_dir() +
                                        "/ci/faults --trials 9 --only 1 2 3 4 5 9 --ranks 2 --stall 6",
                                    300);
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
  EXPECT_NE(outcome.output.find("6 of 6 right"), std::string::npos) << outcome.output << outcome.messages;
}

/// The others wait for it, one line says so, and the run is the one that it would have been.
TEST(FaultsCli, ASlowRankIsReportedAndWaitedFor) {
  if (!std::filesystem::exists(tests::binary_dir() + "/bin/assay-train"))
    GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  const struct {
    int rank;
    const char *phase, *waits_for;
  } trials[] = {{1, "data_wait", "data"}, {0, "data_wait", "data"}, {0, "checkpoint", "a disk"}};
  for (const auto& trial : trials) {
    const tests::Scratch scratch;
    const std::string folder = (scratch.path() / "run").string(), rank = "rank " + std::to_string(trial.rank);
    const auto outcome =
        tests::shell("ASSAY_FAULT_DRILL='kind=wait rank=" + std::to_string(trial.rank) +
                         " step=4 stall=4 phase=" + trial.phase + "' " + tests::assay_path() +
                         " train --ranks 2 compute.device=cpu compute.threads=1 batch.sequences=8 "
                         "batch.sequence_length=32 train.steps=6 checkpoint.every=4 sample.sentences=0 "
                         "run.directory=" +
                         folder,
                     120);
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    const std::string text = rank + " (host ", what = std::string(" has waited for ") + trial.waits_for +
                                                      " for 4 s; step 4, phase " + trial.phase;
    const std::size_t line = outcome.messages.find(text);
    ASSERT_NE(line, std::string::npos) << outcome.messages;
    EXPECT_EQ(outcome.messages.find(text, line + 1), std::string::npos) << outcome.messages;
    EXPECT_NE(outcome.messages.find(what, line), std::string::npos) << outcome.messages;
    const auto run = spec::record::assemble(spec::record::read_events(folder));
    EXPECT_EQ(run.steps.size(), 6u);
    ASSERT_TRUE(run.end);
    EXPECT_EQ(run.end->exit_code, 0);
    std::string recorded;
    for (const auto& warning : run.warnings) recorded += warning.code == "slow_rank" ? warning.text : "";
    EXPECT_TRUE(recorded.starts_with(text) && recorded.find(what) != std::string::npos) << recorded;
  }
}

}  // namespace
}  // namespace assay::faults_test
