// labels: cli fault
// A few of the trials of ci/faults: one of each kind, and one killed from outside.
// docs/measurements/faults.md has a hundred.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/built_program.hpp"

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

}  // namespace
}  // namespace assay::faults_test
