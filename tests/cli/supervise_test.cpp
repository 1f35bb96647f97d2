// labels: cli fault
// `assay train --ranks N` ends as its launcher ends, whatever it inherited.
#include <gtest/gtest.h>

#include <csignal>

#include "impl/cli/program.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli::supervise_test {
namespace {

TEST(SuperviseCli, EndsWithTheExitCodeOfTheCommand) {
  EXPECT_EQ(supervise({"/bin/sh", "-c", "exit 75"}, {}), 75);
  EXPECT_EQ(supervise({"/bin/sh", "-c", "kill -KILL $$"}, {}), 128 + SIGKILL);
  EXPECT_THROW(supervise({"/no/such/launcher"}, {}), UserError);
}

TEST(SuperviseCli, AnIgnoredChildSignalDoesNotHideAFailure) {
  std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(supervise({"/bin/sh", "-c", "exit 75"}, {}), 75);
}

TEST(SuperviseCli, VariablesReachTheCommandUnlessTheyWereSet) {
  EXPECT_EQ(supervise({"/bin/sh", "-c", "exit $ASSAY_TEST_CODE"}, {{"ASSAY_TEST_CODE", "7"}}), 7);
  EXPECT_EQ(supervise({"/bin/sh", "-c", "exit $ASSAY_TEST_CODE"}, {{"ASSAY_TEST_CODE", "8"}}), 7);
}

}  // namespace
}  // namespace assay::impl::cli::supervise_test
