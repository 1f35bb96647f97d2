// labels: unit
// Memory in use against the device's, and the share of it that a line prints.
#include <gtest/gtest.h>

#include "spec/audit/invariants.hpp"

namespace assay::spec::audit::memory_test {
namespace {

/// A line of a GPU of 80 GB: memory in GB, and its share in percent.
RunRecord run(double reserved, double allocated, double share) {
  RunRecord r;
  r[Setting::gpu_memory] = exactly(80e9, 1);
  Step step;
  step.line = 2;
  step[Field::step] = exactly(1, 2);
  if (reserved > 0) step[Field::memory_reserved] = exactly(reserved * 1e9, 2);
  step[Field::memory_allocated] = exactly(allocated * 1e9, 2);
  step[Field::memory_share] = parse_printed(std::to_string(share), Kind::measured, 0.01, 2);
  r.steps.push_back(step);
  r.steps_seen = 1;
  return r;
}

TEST(MemorySpec, TheShareIsOfWhatIsReservedWhereThatIsPrinted) {
  EXPECT_EQ(judge("memory_share", run(60, 40, 75)).verdict, Verdict::holds);
  EXPECT_EQ(judge("memory_share", run(60, 40, 50)).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("memory_share", run(0, 40, 50)).verdict, Verdict::holds);
  EXPECT_EQ(judge("memory_share", run(0, 40, 75)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::memory_test
