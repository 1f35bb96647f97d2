// labels: unit fault
// Traces and tables of profiled steps, as a short run on the CPU writes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "impl/logs/console.hpp"
#include "impl/metrics/ranges.hpp"
#include "tests/impl/run/every_key/workshop.hpp"
#include "tests/support/trace_ranges.hpp"

namespace assay::impl::run::profiling_test {
namespace {

namespace fs = std::filesystem;
using tests::every_key::Workshop;

TEST(ProfilingImpl, TheTraceParsesAndItsRangesNest) {
  Workshop shop;
  const auto outcome = shop.train({"profile.steps=[2,3]"});
  ASSERT_EQ(outcome.code, 0) << outcome.refusal;
  ASSERT_EQ(outcome.run.profiles.size(), 1u);
  const auto& profile = outcome.run.profiles[0];
  ASSERT_TRUE(profile.trace);
  EXPECT_EQ(*profile.trace, "steps-2-3.rank-0.trace.json");
  const auto threads = tests::trace_ranges(fs::path(profile.path) / *profile.trace);
  EXPECT_EQ(threads.size(), 1u) << "the trainer's thread";
  auto names = tests::names_of_nested(threads);
  EXPECT_EQ(names["step 2"], 1);
  EXPECT_EQ(names["step 3"], 1);
  EXPECT_EQ(names.count("step 1") + names.count("step 4"), 0u);
  for (const char* phase : {"forward", "backward", "clip", "update"}) EXPECT_EQ(names[phase], 2) << phase;
  const auto any = [&](const std::string& text) {
    return std::any_of(names.begin(), names.end(),
                       [&](const auto& each) { return each.first.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(any("qkv"));
  EXPECT_TRUE(any("block 1"));
}

TEST(ProfilingImpl, ThePartsAddUpToTheStep) {
  Workshop shop;
  const auto outcome = shop.train({"profile.steps=[2,4]"});
  ASSERT_EQ(outcome.run.profiles.size(), 1u);
  const auto& profile = outcome.run.profiles[0];
  double sum = 0, outside = 0;
  std::set<std::string> kinds;
  for (const auto& part : profile.parts) {
    sum += part.seconds;
    kinds.insert(part.kind);
    if (part.kind == "outside") outside += part.seconds;
  }
  EXPECT_NEAR(sum, profile.seconds, 1e-12);
  EXPECT_EQ(kinds, (std::set<std::string>{"op", "outside"})) << "one rank has no collectives";
  EXPECT_LT(outside, sum);
  double steps = 0;
  for (const auto& step : outcome.run.steps)
    if (step.step >= 2) steps += (step.seconds - step.phases.checkpoint) / 3;
  EXPECT_NEAR(profile.seconds, steps, 0.1 * steps) << "two clocks of one step";
  // The console has the same sum, whatever it leaves out.
  EXPECT_NE(outcome.printed.find("profile of steps 2 to 4"), std::string::npos) << outcome.printed;
}

TEST(ProfilingImpl, TheTableNamesWhatItLeavesOut) {
  const spec::record::Profile profile{.first_step = 3,
                                      .last_step = 3,
                                      .path = "runs/a/profile",
                                      .trace = "t.json",
                                      .seconds = 0.010,
                                      .parts = {{"qkv", "op", 4, 0.005},
                                                {"outside of ops: update", "outside", 0, 0.003},
                                                {"head", "op", 2, 0.0015},
                                                {"norm", "op", 2, 0.0005}}};
  EXPECT_EQ(logs::profile_table(profile, 2),
            "profile of step 3, a step by op\n"
            "  qkv                                                4       5.000 ms   50.0 %\n"
            "  outside of ops: update                                     3.000 ms   30.0 %\n"
            "  2 others                                           4       2.000 ms   20.0 %\n"
            "  sum, the step                                             10.000 ms  100.0 %\n"
            "  trace: runs/a/profile/t.json; open it in https://ui.perfetto.dev or chrome://tracing\n");
}

TEST(ProfilingImpl, AFolderThatCannotBeMadeEndsNoRun) {
  Workshop shop;
  // The place of the folder is taken by a file.
  fs::create_directories(shop.folder("run"));
  std::ofstream(shop.folder("run") + "/profile") << "a file";
  const auto outcome = shop.train({"profile.steps=[2,2]"}, /*after=*/true);
  ASSERT_EQ(outcome.code, 0) << outcome.refusal;
  ASSERT_EQ(outcome.run.profiles.size(), 1u);
  EXPECT_FALSE(outcome.run.profiles[0].trace);
  EXPECT_TRUE(std::any_of(outcome.run.warnings.begin(), outcome.run.warnings.end(),
                          [](const auto& warning) { return warning.code == "profile"; }));
}

TEST(ProfilingImpl, OutsideOfAProfileARangeAsksForNoName) {
  int asked = 0;
  const auto name = [&] {
    ++asked;
    return std::string("x");
  };
  {
    metrics::Range range(name);
    range.turn_to(name);
  }
  EXPECT_EQ(asked, 0);
  const metrics::RangesRecorded recorded;
  const metrics::Range range(name);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace assay::impl::run::profiling_test
