// labels: unit
// The fields of our own record that no other test's record holds.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"

namespace assay::spec::audit::assay_record_test {
namespace {

/// The record of one step with this MFU and HFU.
RunRecord record_of(double mfu, double hfu) {
  record::Step step = tests::example_step(1);
  step.mfu = mfu, step.hfu = hfu, step.executed_flops = 3e10;
  std::istringstream in(record::to_json(tests::example_start()) + "\n" + record::to_json(step) + "\n");
  return read_log(in, "run.jsonl");
}

TEST(AssayRecordSpec, StepsHaveTheirMfuAndHfu) {
  const RunRecord run = record_of(0.375, 0.4375);
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.steps[0][Field::mfu]->value, 0.375);
  EXPECT_EQ(run.steps[0][Field::hfu]->value, 0.4375);
  EXPECT_EQ(run.unread_lines, 0);
  EXPECT_EQ(judge("hfu", run).verdict, Verdict::holds);
}

TEST(AssayRecordSpec, AnHfuBelowTheMfuContradicts) {
  EXPECT_EQ(judge("hfu", record_of(0.4375, 0.375)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::assay_record_test
