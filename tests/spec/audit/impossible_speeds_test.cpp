// labels: unit
// A speed above the peak of the GPUs, which no other number of the log contradicts, and what is the peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::impossible_speeds_test {
namespace {

using tests::read_mapped;
using tests::read_text;

/// JSON lines of Llama 3 8B on 8 H100 at `rate` tokens/s of all GPUs.
RunRecord json_lines(double rate) {
  std::ostringstream out;
  for (int i = 1; i <= 20; ++i)
    out << R"({"step": )" << i << R"(, "loss": )" << 12 - 0.1 * i << R"(, "tps": )" << rate + i << "}\n";
  return read_text(out.str(), "model=llama3-8b,gpus=8,gpu=NVIDIA H100 80GB HBM3,sequence_length=4096",
                   "step=step,loss=loss,tokens_per_second=tps");
}

TEST(ImpossibleNumbersSpec, ASpeedAboveThePeakContradictsWithoutAPrintedMfu) {
  // 989.4e12 x 8 / 48.3 GFLOP per token of `exact` at 4,096: 163,800 tokens/s is the peak.
  const RunRecord possible = json_lines(60000), impossible = json_lines(398000);
  EXPECT_EQ(judge("mfu_possible", possible).verdict, Verdict::holds);
  const Result told = judge("mfu_possible", impossible);
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_NEAR(told.printed, 2.43, 0.02);
  EXPECT_EQ(told.contradicted, 20);
  ASSERT_EQ(told.causes.size(), 1u);
  EXPECT_EQ(told.causes[0].id, "speed_impossible");
}

TEST(ImpossibleNumbersSpec, TheFirstMfuThatIsImpossibleIsTheOneTold) {
  const std::string map = "step=iter,loss=loss,mfu=mfu:%";
  const Result told =
      judge("mfu_possible", read_mapped("iter,loss,mfu\n1,10.5,250\n2,10.4,41\n3,10,42\n4,10,40\n", map));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_DOUBLE_EQ(told.printed, 2.5);
  EXPECT_DOUBLE_EQ(told.off_by, 2.5);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{2}));
  const Result nan =
      judge("mfu_possible", read_mapped("iter,loss,mfu\n1,10.5,40\n2,10.4,41\n3,10,nan\n4,10,40\n", map));
  EXPECT_EQ(nan.verdict, Verdict::holds);
  EXPECT_EQ(nan.note, "1 printed as NaN: not measured");
}

TEST(ImpossibleNumbersSpec, ASpeedThatNoLinePrintsIsNotCalledPrinted) {
  // 6,291,456 tokens in 1.838 s on two B200 would be 5.95 times the peak; the line prints 10.44 %.
  const RunRecord two = tests::scaling_report_run(2);
  const Audit found = audit(two);
  const auto told = std::find_if(found.results.begin(), found.results.end(),
                                 [](const Result& r) { return r.id == "mfu_possible"; });
  ASSERT_EQ(told->verdict, Verdict::contradicts);
  EXPECT_DOUBLE_EQ(told->printed, 0.1044);
  EXPECT_NEAR(told->recomputed.middle(), 5.954, 0.001);
  EXPECT_FALSE(told->unprinted);
  // Neither one rank's rate nor the sparse peak makes fewer tokens of that step.
  ASSERT_EQ(told->causes.size(), 1u);
  EXPECT_EQ(told->causes[0].id, "accumulation_performed");
  EXPECT_TRUE(judge("mfu_possible", json_lines(398000)).unprinted);
  EXPECT_FALSE(
      judge("mfu_possible", read_mapped("iter,loss,mfu\n1,10.5,250\n", "step=iter,loss=loss,mfu=mfu:%"))
          .unprinted);
}

TEST(ImpossibleNumbersSpec, AnUnknownDtypeHasNoPeak) {
  RunRecord report = tests::scaling_report_run(8);
  for (const char* fp8 : {"fp8", "float8_e4m3fn", "fp8_hybrid", "torch.float8_e5m2", "e4m3", "MXFP8"}) {
    report.dtype = fp8;
    EXPECT_EQ(judge("peak", report).verdict, Verdict::holds) << fp8;  // 8 x 4,500: dense
  }
  for (const char* bf16 :
       {"", "bf16", "bfloat16", "torch.bfloat16", "bf16-mixed", "mixed_bf16", "16-mixed", "fp16-true"}) {
    report.dtype = bf16;
    EXPECT_EQ(judge("peak", report).verdict, Verdict::contradicts) << bf16;
  }
  for (const char* unknown : {"int4", "foo", "posit16"}) {
    report.dtype = unknown;
    EXPECT_EQ(judge("peak", report).verdict, Verdict::cannot_be_judged) << unknown;
    const Audit found = audit(report);
    for (const Reading& reading : found.readings) {
      EXPECT_FALSE(reading.corrected.mfu_exact) << unknown;
      for (const Change& change : reading.changes) EXPECT_NE(change.id, "peak_sparse") << unknown;
    }
  }
  const auto option = [](const char* value) {
    return std::string("{\"log\": \"option\", \"step\": 0, \"name\": \"matmul-dtype\", \"value\": \"") +
           value + "\"}";
  };
  const std::string step =
      "{\"log\": \"step\", \"step\": 0, \"step_tokens\": 1, \"duration_ms\": 1, \"loss\": 9.5}";
  EXPECT_EQ(read_mapped("[\n" + option("e4m3") + ",\n" + step + "\n]\n").dtype, "fp8");
}

TEST(ImpossibleNumbersSpec, PrintedFlopsAboveThePeakContradictWithoutAModel) {
  RunRecord r;
  r.gpu = "NVIDIA H100 80GB HBM3";
  r.format.flops_rate = Scope::gpu;
  r.steps.emplace_back();
  r.steps[0][Field::flops_rate] = Printed{1330e12, 1329.95e12, 1330.05e12, 1};
  EXPECT_EQ(judge("mfu_possible", r).verdict, Verdict::contradicts);
  r.steps[0][Field::flops_rate] = Printed{400e12, 399.95e12, 400.05e12, 1};
  EXPECT_EQ(judge("mfu_possible", r).verdict, Verdict::holds);
  // Of all GPUs, perhaps: not known of how many.
  r.format.flops_rate = Scope::unknown;
  EXPECT_EQ(judge("mfu_possible", r).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::impossible_speeds_test
