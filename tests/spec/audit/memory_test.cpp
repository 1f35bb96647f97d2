// labels: unit
// Memory in use against the device's, and the share of it that a line prints.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

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

Verdict of_device(const char* gpu, const char* gib) {
  RunRecord r;
  r.gpu = gpu;
  r[Setting::gpu_memory] = parse_printed(gib, Kind::measured, 0x1p30, 1);
  return judge("device_memory", r).verdict;
}

TEST(MemorySpec, ADriverMayReportMoreThanTheSheetRounds) {
  for (const auto& [gpu, gib] :
       std::vector<std::pair<const char*, const char*>>{{"NVIDIA GB200", "187.28"},
                                                        {"NVIDIA GB200", "184.31"},
                                                        {"NVIDIA B200", "178.35"},
                                                        {"NVIDIA B300 SXM6 AC", "267.69"},
                                                        {"NVIDIA GB300", "276.62"},
                                                        {"NVIDIA H200", "139.83"},
                                                        {"NVIDIA H100 80GB HBM3", "79.10"},
                                                        {"AMD Instinct MI355X", "287.98"}})
    EXPECT_EQ(of_device(gpu, gib), Verdict::holds) << gpu << " " << gib;
  // GB that are called GiB, and more than is mounted.
  for (const auto& [gpu, gib] : std::vector<std::pair<const char*, const char*>>{
           {"NVIDIA GB200", "199.72"}, {"NVIDIA B200", "191.51"}, {"NVIDIA H200", "150.14"}})
    EXPECT_EQ(of_device(gpu, gib), Verdict::contradicts) << gpu << " " << gib;
}

}  // namespace
}  // namespace assay::spec::audit::memory_test
