// labels: unit
// Our own record's plan of the memory, and what was measured of it.
#include <gtest/gtest.h>

#include "spec/audit/invariants.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::memory_plan_test {
namespace {

/// A record with one step on a GPU of 80 GB, planned to take 40 GB of it, 10 GB of them state.
struct OwnRecord {
  record::RunStart start = tests::example_start();
  record::Step step = tests::example_step(1);
  record::Memory memory{
      .step = 1,
      .device = "cuda:0",
      .capacity_bytes = 80'000'000'000,
      .planned_bytes = 40'000'000'000,
      .state_bytes = 10'000'000'000,
      .moment = "the head",
      .measured_bytes = 39'900'000'000,
      .tensors = {{"x", "activations", 4, 30'000'000'000}, {"weights", "state", 1, 10'000'000'000}}};
  bool warned = false;
  std::string before, resumed, behind = record::to_json(record::Warning{1, "other", "another line"}) + "\n";

  OwnRecord() {
    start.planned_memory_bytes = memory.planned_bytes;
    step.device_peak_bytes = 39'000'000'000;
  }
  Result judged() const {
    std::string text = before + record::to_json(start) + "\n" + resumed + record::to_json(step) + "\n" +
                       record::to_json(memory) + "\n";
    if (warned) text += record::to_json(record::Warning{1, "memory_plan", "differs"}) + "\n";
    text += behind;
    return judge("memory_plan", tests::read_text(text));
  }
  std::string cause() const {
    const Result told = judged();
    return told.verdict == Verdict::contradicts ? told.causes.at(0).id : std::string(to_string(told.verdict));
  }
};

TEST(MemoryPlanSpec, ATruthfulPlanHolds) {
  OwnRecord own;
  EXPECT_EQ(own.cause(), "holds");
  EXPECT_EQ(own.judged().judged, 2);
  own.memory.measured_bytes.reset();  // on a CPU nothing is measured
  EXPECT_EQ(own.cause(), "holds");
  own.start.planned_memory_bytes.reset();
  EXPECT_EQ(own.cause(), "holds");
}

/// With several expert ranks the plan is of the largest load: less may be measured, and no more.
TEST(MemoryPlanSpec, APlanOfALoadIsTheMostThatMayBeMeasured) {
  OwnRecord own;
  own.memory.load = 1.2;
  own.memory.measured_bytes = 39'100'000'000;
  EXPECT_EQ(own.cause(), "holds");
  own.memory.measured_bytes = 41'000'000'000;
  EXPECT_EQ(own.cause(), "memory_measured_other");
  own.memory.load.reset();
  own.memory.measured_bytes = 39'100'000'000;
  EXPECT_EQ(own.cause(), "memory_measured_other");
}

TEST(MemoryPlanSpec, APlanThatIsNotItsOwnSumOrDoesNotFitContradicts) {
  OwnRecord own;
  own.memory.capacity_bytes = 39'999'999'999;
  EXPECT_EQ(own.cause(), "memory_beyond_device");
  own = OwnRecord();
  own.memory.tensors[0].bytes += 1;
  EXPECT_EQ(own.cause(), "memory_plan_other");
  own = OwnRecord();
  own.start.planned_memory_bytes = 39'000'000'000;
  EXPECT_EQ(own.cause(), "memory_plan_other");
  own = OwnRecord();
  own.memory.state_bytes = 40'000'000'001;
  EXPECT_EQ(own.cause(), "memory_plan_other");
}

TEST(MemoryPlanSpec, AMeasurementThatCannotBeContradicts) {
  OwnRecord own;
  own.step.device_peak_bytes = 0;
  own.memory.measured_bytes = 9'000'000'000, own.warned = true;  // the state alone takes more
  EXPECT_EQ(own.cause(), "memory_measured_other");
  own.memory.measured_bytes = 81'000'000'000;
  EXPECT_EQ(own.cause(), "memory_beyond_device");
  own.memory.measured_bytes = 39'000'000'000;  // 2.5 % less
  EXPECT_EQ(own.cause(), "holds");
  own.warned = false;
  EXPECT_EQ(own.cause(), "memory_measured_other");
  own.memory.measured_bytes = 39'300'000'000;
  EXPECT_EQ(own.cause(), "holds");
  own.step.device_peak_bytes = 39'400'000'000;
  EXPECT_EQ(own.cause(), "memory_measured_other");
}

TEST(MemoryPlanSpec, AStepBelowAPlanWhoseFullestMomentIsLaterIsNotAccused) {
  OwnRecord record;
  record.memory.measured_bytes = 39'100'000'000;
  EXPECT_EQ(record.cause(), "memory_measured_other");
  record.memory.moment = "validation, forward of block 1";
  EXPECT_EQ(record.cause(), "holds");
  record.memory.measured_bytes = 40'900'000'000;
  EXPECT_EQ(record.cause(), "memory_measured_other") << "more than any moment takes";
}

TEST(MemoryPlanSpec, ARecordThatEndsBeforeTheWarningIsNotAccused) {
  OwnRecord own;
  own.step.device_peak_bytes = 0;
  own.memory.measured_bytes = 39'000'000'000;  // 2.5 % less
  EXPECT_EQ(own.cause(), "memory_measured_other");
  for (const char* cut : {"", "{\"event\":\"warning\",\"step\":1,\"code\":\"memory_p"}) {
    own.behind = cut;
    EXPECT_EQ(own.cause(), "holds") << cut;
    EXPECT_NE(own.judged().note.find("the record ends"), std::string::npos);
  }
}

TEST(MemoryPlanSpec, ThePeakOfAProcessThatWasKilledIsNotTheNextOnes) {
  OwnRecord own;
  own.memory.measured_bytes = 39'900'000'000;
  record::Step killed = own.step;
  killed.device_peak_bytes = 39'950'000'000;
  own.before = record::to_json(own.start) + "\n" + record::to_json(killed) + "\n";
  own.resumed = record::to_json(record::ResumeFrom{0, "checkpoints/0"}) + "\n";
  EXPECT_EQ(own.cause(), "holds") << own.judged().note;
  own.step.device_peak_bytes = 39'950'000'000;
  EXPECT_EQ(own.cause(), "memory_measured_other") << "of the same start";
}

}  // namespace
}  // namespace assay::spec::audit::memory_plan_test
