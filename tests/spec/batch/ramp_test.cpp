// labels: unit property
#include "spec/batch/ramp.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/label_of.hpp"

namespace assay::spec::ramp_test {
namespace {

GlobalBatch draw_batch() {
  GlobalBatch batch{.sequences = *rc::gen::inRange<std::int64_t>(1, 50)};
  batch.ramp.resize(*rc::gen::inRange<std::size_t>(0, 5));
  for (RampStage& stage : batch.ramp)
    stage = {*rc::gen::inRange<std::int64_t>(1, 50), *rc::gen::inRange<std::int64_t>(1, 9)};
  return batch;
}

TEST(RampSpec, HasThePagesExample) {
  const GlobalBatch batch{.sequences = 128, .ramp = {{32, 1000}, {64, 500}}};
  EXPECT_EQ(sequences_of(batch, 999), 32);
  EXPECT_EQ(sequences_of(batch, 1000), 64);
  EXPECT_EQ(sequences_of(batch, 1200), 64);
  EXPECT_EQ(sequences_of(batch, 1500), 128);
  EXPECT_EQ(sequences_before(batch, 1200), 44'800);
}

RC_GTEST_PROP(RampSpec, ThePositionIsTheSumOfTheStepsBefore, ()) {
  const GlobalBatch batch = draw_batch();
  std::int64_t sum = 0;
  for (std::int64_t step = 0; step < 60; ++step) {
    RC_ASSERT(sequences_before(batch, step) == sum);
    sum += sequences_of(batch, step);
  }
}

RC_GTEST_PROP(RampSpec, AChangeLeavesTheStepsThatAreDoneAndTheStagesToCome, ()) {
  const GlobalBatch before = draw_batch();
  const auto at = *rc::gen::inRange<std::int64_t>(0, 60), sequences = *rc::gen::inRange<std::int64_t>(1, 50);
  const GlobalBatch after = changed_at(before, at, sequences);
  std::int64_t final = at;
  for (std::int64_t step = 0; const RampStage& stage : before.ramp)
    final = std::max(final, step += stage.steps);
  for (std::int64_t step = 0; step < final; ++step)
    RC_ASSERT(sequences_of(after, step) == sequences_of(before, step));
  for (std::int64_t step = final; step < final + 20; ++step)
    RC_ASSERT(sequences_of(after, step) == sequences);
}

RC_GTEST_PROP(RampSpec, StepsForSequencesAreTheFewest, ()) {
  GlobalBatch batch{.sequences = *rc::gen::inRange<std::int64_t>(1, 100)};
  batch.ramp.resize(*rc::gen::inRange<std::size_t>(0, 4));
  for (RampStage& stage : batch.ramp)
    stage = {*rc::gen::inRange<std::int64_t>(1, 100), *rc::gen::inRange<std::int64_t>(1, 20)};
  const auto wanted = *rc::gen::inRange<std::int64_t>(1, 10'000);
  const std::int64_t steps = steps_for(batch, wanted);
  RC_ASSERT(sequences_before(batch, steps) >= wanted);
  RC_ASSERT(sequences_before(batch, steps - 1) < wanted);
}

TEST(RampSpec, C1RefusesAPositionThatIsNoNumber) {
  const GlobalBatch batch{.sequences = 1'000'000'000};
  EXPECT_EQ(tests::label_of([&] { sequences_before(batch, 1'000'000'000'000); }), "ramp_c1");
  EXPECT_EQ(tests::label_of([&] { sequences_before(batch, 1'000'000'000); }), "accepted");
}

TEST(RampSpec, TextsReadBack) {
  EXPECT_EQ(ramp_stage(to_text(RampStage{32, 1000})), (RampStage{32, 1000}));
  for (const char* text :
       {"", "32", "32:", ":5", "0:5", "5:0", "-1:5", "5:5:5", "a:5", "1.5:2", "32:9999999999999"})
    EXPECT_FALSE(ramp_stage(text)) << text;
}

}  // namespace
}  // namespace assay::spec::ramp_test
