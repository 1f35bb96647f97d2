// labels: unit
// A table may print the tokens/s of one GPU and none of all: it is held to batch and time like any rate.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::lone_gpu_rate_test {
namespace {

/// Steps of 64 x 8,192 tokens on 8 GPUs; the rate is that of all over `share`.
RunRecord steps_of(double share, bool of_all_beside = false) {
  std::string log = of_all_beside ? "step,sec,tps_gpu,tps\n" : "step,sec,tps_gpu\n";
  for (int i = 1; i <= 40; ++i) {
    const double seconds = 9 + 0.013 * (i * 7 % 11);
    char line[100];
    std::snprintf(line, sizeof line, "%d,%.4f,%.1f", i, seconds, 524'288 / seconds / share);
    log += line;
    std::snprintf(line, sizeof line, ",%.1f", 524'288 / seconds);
    log += of_all_beside ? std::string(line) + "\n" : "\n";
  }
  ReadOptions options;
  options.map = "step=step,seconds=sec,gpu_tokens_per_second=tps_gpu";
  if (of_all_beside) options.map += ",tokens_per_second=tps";
  options.set = "gpus=8,sequences=64,sequence_length=8192";
  std::istringstream in(log);
  return read_log(in, "steps.csv", options);
}

TEST(LoneGpuRateSpec, IsHeldToBatchAndTime) {
  const Result held = judge("rate_time", steps_of(8));
  EXPECT_EQ(held.verdict, Verdict::holds);
  EXPECT_EQ(held.judged, 40);
}

TEST(LoneGpuRateSpec, OfAllItIsNamedSo) {
  const RunRecord record = steps_of(1);
  const Audit told = audit(record);
  ASSERT_FALSE(told.readings.empty());
  ASSERT_FALSE(told.readings.front().changes.empty());
  EXPECT_EQ(told.readings.front().changes.front().id, "rate_of_all");
}

TEST(LoneGpuRateSpec, BesideThatOfAllItStaysItself) {
  const RunRecord record = steps_of(8, true);
  EXPECT_TRUE(record.steps.front()[Field::gpu_tokens_per_second]);
  EXPECT_EQ(judge("gpu_rate", record).verdict, Verdict::holds);
  EXPECT_EQ(judge("gpu_rate", steps_of(4, true)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::lone_gpu_rate_test
