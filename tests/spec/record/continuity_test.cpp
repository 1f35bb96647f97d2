// labels: unit
#include "spec/record/continuity.hpp"

#include <gtest/gtest.h>

#include "tests/support/example_run.hpp"

namespace assay::spec::record::continuity_test {
namespace {

using Events = std::vector<Event>;

Events steps(std::int64_t first, std::int64_t last, Events before = {tests::example_start()}) {
  for (std::int64_t step = first; step <= last; ++step) before.push_back(tests::example_step(step));
  return before;
}

Events with(Events events, const Event& event) {
  events.push_back(event);
  return events;
}

TEST(ContinuitySpec, OneRunAndItsResumesGoOn) {
  EXPECT_TRUE(discontinuities(steps(1, 5)).empty());
  EXPECT_TRUE(discontinuities({tests::example_start()}).empty());
  // Resumed behind its last step, then at it, then from the checkpoint of another run.
  Events events = with(steps(1, 5), tests::example_start());
  events = steps(4, 9, with(events, ResumeFrom{.step = 3, .path = "a"}));
  events = with(with(events, tests::example_start()), ResumeFrom{.step = 9, .path = "a"});
  EXPECT_TRUE(discontinuities(steps(10, 12, events)).empty());
  EXPECT_TRUE(
      discontinuities(steps(8, 9, {tests::example_start(), ResumeFrom{.step = 7, .path = "b"}})).empty());
  // A start that was stopped before its first step.
  EXPECT_TRUE(discontinuities(steps(1, 3, {tests::example_start(), tests::example_start()})).empty());
}

TEST(ContinuitySpec, WhatIsMissingDoubledOrGoesBackIsNamed) {
  using Found = std::vector<std::string>;
  EXPECT_EQ(discontinuities(steps(4, 5, steps(1, 2))), Found{"step 3 is missing"});
  EXPECT_EQ(discontinuities(steps(7, 8, steps(1, 2))), Found{"steps 3 to 6 are missing"});
  EXPECT_EQ(discontinuities(steps(3, 4)), Found{"steps 1 to 2 are missing"});
  EXPECT_EQ(discontinuities(steps(5, 6, steps(1, 5))), Found{"step 5 stands twice"});
  EXPECT_EQ(discontinuities(steps(2, 6, steps(1, 5))), Found{"step 2 follows step 5 without a resume"});
}

TEST(ContinuitySpec, TwoRunsInOneRecordAreTold) {
  const auto found = discontinuities(steps(1, 3, with(steps(1, 5), tests::example_start())));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("two runs stand in one record"), std::string::npos) << found[0];
  RunStart other = tests::example_start();
  other.model = "other";
  EXPECT_NE(discontinuities(steps(1, 3, with(steps(1, 5), other))).at(0).find("of \"tiny-llama\""),
            std::string::npos);
}

TEST(ContinuitySpec, AResumeFromAStepThatWasNotDoneIsTold) {
  const Events events =
      with(with(steps(1, 5), tests::example_start()), ResumeFrom{.step = 8, .path = "elsewhere"});
  EXPECT_EQ(discontinuities(steps(9, 10, events)),
            std::vector<std::string>{"the run was resumed after step 8, but step 5 is the last that stands "
                                     "before it"});
}

TEST(ContinuitySpec, ManyDiscontinuitiesAreCounted) {
  Events events = {tests::example_start()};
  for (std::int64_t step = 2; step < 40; step += 2) events.push_back(tests::example_step(step));
  const auto found = discontinuities(events);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found.back(), "and 14 more discontinuities");
}

}  // namespace
}  // namespace assay::spec::record::continuity_test
