// labels: cli
// The profile of a run on several ranks: a trace and a table of each.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/cli/train_program.hpp"
#include "tests/support/trace_ranges.hpp"

namespace assay::cli_profile_test {
namespace {

using ProfileProgram = tests::TrainProgram;

TEST_F(ProfileProgram, HasTheCollectivesOfEachRankWithinItsSteps) {
  const auto outcome = train("a", "--ranks 2 profile.steps=[2,3]");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  for (const char* rank : {"0", "1"}) {
    const std::string begin = folder("a") + "/profile/steps-2-3.rank-" + rank;
    auto names = tests::names_of_nested(tests::trace_ranges(begin + ".trace.json"));
    EXPECT_EQ(names["step 2"], 1);
    EXPECT_EQ(names["step 3"], 1);
    EXPECT_GE(names["reduce"], 2);
    EXPECT_GE(names["all_reduce"], 2) << "gradients of each step";
    EXPECT_GE(names["wait for all_reduce"], 2);
    std::ifstream table(begin + ".ops.txt");
    const std::string text{std::istreambuf_iterator<char>(table), {}};
    EXPECT_NE(text.find("\n  all_reduce  "), std::string::npos) << text;
  }
  const auto run = run_of("a");
  ASSERT_EQ(run.profiles.size(), 1u);
  double sum = 0, collectives = 0;
  for (const auto& part : run.profiles[0].parts) {
    sum += part.seconds;
    if (part.kind == "collective") collectives += part.seconds;
  }
  EXPECT_NEAR(sum, run.profiles[0].seconds, 1e-12);
  EXPECT_GT(collectives, 0);
}

}  // namespace
}  // namespace assay::cli_profile_test
