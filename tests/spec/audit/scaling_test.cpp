// labels: unit
// More GPUs that make each of them faster: what no mistake of counting makes is told, what one makes
// contradicts.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "spec/audit/compare_runs.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::scaling_test {
namespace {

/// torchtitan's Llama 3 8B on that many H100, one sequence of 8,192 tokens each; `rate` per GPU. [tokens/s]
RunRecord run_on(int gpus, double rate) {
  const std::string head = "[titan] 2026-01-09 10:00:00,000 - root - INFO - ";
  char text[400];
  std::snprintf(text, sizeof text,
                "%sBuilding 1-D device mesh with ['dp_shard'], [%d]\n"
                "%sModel llama3 8B size: 8,030,261,248 total parameters\n"
                "%sCUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n",
                head.c_str(), gpus, head.c_str(), head.c_str());
  std::string log = text;
  std::snprintf(text, sizeof text,
                "%sTraining starts at step 1, with local batch size 1, global batch size %d, sequence length "
                "8192, total steps 100\n",
                head.c_str(), gpus);
  log += text;
  for (int k = 1; k <= 10; ++k) {
    std::snprintf(text, sizeof text, "%sstep: %2d  loss: %7.4f  memory: 60.10GiB(75.98%%)  tps: %.0f\n",
                  head.c_str(), k, 12 - 0.1 * k, rate + k % 3);
    log += text;
  }
  std::istringstream in(log);
  return read_logs(in, std::to_string(gpus) + " GPUs").front();
}

Result scaling_of(double rate) {
  const Together together = audit({run_on(8, 6250), run_on(16, rate)});
  EXPECT_EQ(together.results.size(), 1u);
  return together.results.front();
}

TEST(ScalingSpec, OnlyWhatAMistakeOfCountingMakesContradicts) {
  EXPECT_EQ(scaling_of(6100).verdict, Verdict::holds);
  EXPECT_EQ(scaling_of(6500).note, "");
  // Compiled, or with less recompute: no number is wrong.
  for (const double rate : {1.3 * 6250, 1.7 * 6250}) {
    const Result told = scaling_of(rate);
    EXPECT_EQ(told.verdict, Verdict::holds) << rate;
    EXPECT_NE(told.note.find("with more GPUs"), std::string::npos) << told.note;
  }
  const Result twice = scaling_of(1.97 * 6250);
  EXPECT_EQ(twice.verdict, Verdict::contradicts);
  ASSERT_FALSE(twice.causes.empty());
  EXPECT_EQ(twice.causes.front().id, "scaling_above_linear");
}

}  // namespace
}  // namespace assay::spec::audit::scaling_test
