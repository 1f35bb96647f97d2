// labels: unit
// What the train_gpt2.py of llm.c and of build-nanogpt print, with their headers.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::train_gpt2_test {
namespace {

const std::string header =
    "using device: cuda\ntotal desired batch size: 524288\n=> calculated gradient accumulation steps: 32\n"
    "found 99 shards for split train\n"
    "num decayed parameter tensors: 50, with 124,354,560 parameters\n"
    "num non-decayed parameter tensors: 98, with 121,344 parameters\nusing fused AdamW: True\n";

RunRecord read(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

/// llm.c's lines, or build-nanogpt's; tokens/s is `factor` times that of the step.
std::string steps(bool of_llm_c, double factor = 1) {
  std::string out;
  for (int i = 1; i <= 12; ++i) {
    const double ms = 339.2 + 0.13 * i, rate = factor * 524288 / ms * 1e3;
    char line[256];
    if (of_llm_c)
      std::snprintf(line, sizeof line,
                    "step %4d/19560 | train loss %.6f | norm 1.2345 | lr 8.57e-07 | (%.2f ms | %.0f tok/s)\n",
                    i, 11 - 0.01 * i, ms, rate);
    else
      std::snprintf(line, sizeof line,
                    "step %5d | loss: %.6f | lr 8.3916e-07 | norm: 15.2345 | dt: %.2fms | tok/sec: %.2f\n",
                    i - 1, 11 - 0.01 * i, ms, rate);
    out += line;
  }
  return out;
}

TEST(TrainGpt2Spec, TheHeaderIsReadAndHeldAgainstTheLines) {
  for (const bool of_llm_c : {true, false}) {
    const RunRecord run = read(header + steps(of_llm_c));
    EXPECT_EQ(run.format.name, of_llm_c ? "llmc" : "build_nanogpt");
    ASSERT_EQ(run.steps.size(), 12u);
    EXPECT_EQ(run.unread_lines, 0);
    EXPECT_EQ(run[Setting::tokens_per_step]->value, 524288);
    EXPECT_EQ(run[Setting::accumulation]->value, 32);
    EXPECT_EQ(run[Setting::parameters]->value, 124475904);
    EXPECT_EQ(run.device, "");
    EXPECT_EQ(contradictions(run), "");
    EXPECT_EQ(judge("rate_time", run).verdict, Verdict::holds);
    EXPECT_EQ(judge("rate_time", read(header + steps(of_llm_c, 1.0 / 8))).verdict, Verdict::contradicts);
    EXPECT_EQ(read("using device: cpu\n" + steps(of_llm_c)).device, "cpu");
  }
}

TEST(TrainGpt2Spec, EachNumberOfBuildNanoGptsLine) {
  const RunRecord run = read(
      "step     0 | loss: 10.955029 | lr 8.3916e-07 | norm: 15.2986 | dt: 24183.37ms | tok/sec: 21679.68\n");
  ASSERT_EQ(run.steps.size(), 1u);
  const Step& step = run.steps[0];
  EXPECT_EQ(step[Field::step]->value, 0);
  EXPECT_DOUBLE_EQ(step[Field::loss]->value, 10.955029);
  EXPECT_DOUBLE_EQ(step[Field::learning_rate]->value, 8.3916e-07);
  EXPECT_DOUBLE_EQ(step[Field::gradient_norm]->value, 15.2986);
  EXPECT_DOUBLE_EQ(step[Field::seconds]->value, 24.18337);
  EXPECT_DOUBLE_EQ(step[Field::tokens_per_second]->value, 21679.68);
}

TEST(TrainGpt2Spec, ALastLineThatIsCutIsQuoted) {
  const std::string log = header + steps(false);
  const RunRecord run = read(log.substr(0, log.size() - 3));
  EXPECT_EQ(run.steps.size(), 11u);
  EXPECT_EQ(run.unread_lines, 1);
}

}  // namespace
}  // namespace assay::spec::audit::train_gpt2_test
