// labels: unit
#include <gtest/gtest.h>
// The matcher needs GoogleTest's header before its own.
#include <gtest/gtest-spi.h>

#include "spec/audit/expect_consistent.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"

namespace assay::spec::audit::expect_consistent_test {
namespace {

TEST(ExpectConsistentSpec, PassesForARecordWithoutContradiction) {
  EXPECT_CONSISTENT(RunRecord());
  ASSERT_CONSISTENT(RunRecord());
}

TEST(ExpectConsistentSpec, FailsWithThePlaceOfEachContradiction) {
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(tests::scaling_report_run(2)), "rate_time: printed 106,979 /s");
  EXPECT_NONFATAL_FAILURE(EXPECT_CONSISTENT(tests::scaling_report_run(2)), "peak: printed 9000.0 TFLOP/s");
}

}  // namespace
}  // namespace assay::spec::audit::expect_consistent_test
