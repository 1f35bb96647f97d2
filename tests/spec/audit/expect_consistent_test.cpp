// labels: unit
#include <gtest/gtest.h>
// The matcher needs GoogleTest's header before its own.
#include <gtest/gtest-spi.h>

#include "spec/audit/expect_consistent.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"

namespace assay::spec::audit::expect_consistent_test {
namespace {

TEST(ExpectConsistentSpec, PassesForARecordWithoutContradiction) {
  RunRecord record;
  record[Setting::micro] = exactly(2);
  record[Setting::accumulation] = exactly(4);
  record[Setting::data_parallel] = exactly(8);
  record[Setting::sequences] = exactly(64);
  EXPECT_CONSISTENT(record);
  ASSERT_CONSISTENT(record);
}

// Of a test whose reader finds nothing any more.
TEST(ExpectConsistentSpec, FailsWhenNothingCanBeJudged) {
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(RunRecord()), "nothing can be judged: the record holds 0 steps");
  EXPECT_FATAL_FAILURE(ASSERT_CONSISTENT(RunRecord()), "nothing can be judged");
  RunRecord one_number;
  one_number[Setting::micro] = exactly(2);
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(one_number), "nothing can be judged");
}

// Else a misspelt name would switch off all that rests on it.
TEST(ExpectConsistentSpec, FailsForAModelOrGpuThatIsNotKnown) {
  RunRecord record;
  record[Setting::micro] = exactly(2);
  record[Setting::accumulation] = exactly(4);
  record[Setting::data_parallel] = exactly(8);
  record[Setting::sequences] = exactly(64);
  record.model = "llama3-8b", record.gpu = "NVIDIA H100 80GB HBM3";
  EXPECT_CONSISTENT(record);
  record.model = "llama3-8bb";
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(record), R"(\"llama3-8bb\" (did you mean \"llama3-8b\"?))");
  EXPECT_FALSE(consistent(record));
  record.model = "", record.gpu = "H1000";
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(record), R"(no GPU is known by the name \"H1000\")");
  // A log names its trainer's models; what the caller stated of it is the caller's.
  record.lines = 12;
  EXPECT_CONSISTENT(record);
  record.state("gpu", &RunRecord::gpu, "H1000", "--gpu H1000");
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(record), R"(no GPU is known by the name \"H1000\")");
  // The CPU has no facts to be known by.
  record.device = "cpu";
  EXPECT_CONSISTENT(record);
}

TEST(ExpectConsistentSpec, FailsWithThePlaceOfEachContradiction) {
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(tests::scaling_report_run(2)), "rate_time: printed 106,979 /s");
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(tests::scaling_report_run(2)), "peak: printed 9000.0 TFLOP/s");
}

}  // namespace
}  // namespace assay::spec::audit::expect_consistent_test
