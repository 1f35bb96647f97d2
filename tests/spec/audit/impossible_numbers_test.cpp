// labels: unit
// Lies that no other number of the log contradicts: a speed above the peak, times below 0, a log there twice.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit {
namespace {

RunRecord record_of(const std::string& text, const std::string& map = "", const std::string& set = "") {
  ReadOptions options;
  options.map = map;
  options.set = set;
  std::istringstream in(text);
  return read_log(in, "x.log", options);
}

/// JSON lines of Llama 3 8B on 8 H100 at `rate` tokens/s of all GPUs.
RunRecord json_lines(double rate) {
  std::ostringstream out;
  for (int i = 1; i <= 20; ++i)
    out << R"({"step": )" << i << R"(, "loss": )" << 12 - 0.1 * i << R"(, "tps": )" << rate + i << "}\n";
  return record_of(out.str(), "step=step,loss=loss,tokens_per_second=tps",
                   "model=llama3-8b,gpus=8,gpu=NVIDIA H100 80GB HBM3,sequence_length=4096");
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

TEST(ImpossibleNumbersSpec, NegativeAndInfiniteNumbersContradictAndNanIsCounted) {
  const std::string map = "step=iter,loss=loss,seconds=ms:ms,tokens_per_second=tps";
  const RunRecord negative = record_of("iter,loss,ms,tps\n1,11.4,-994.7,3294\n2,11.3,990.1,-3273\n", map);
  const Result told = judge("values_possible", negative);
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(told.causes.at(0).text.rfind("step time is below 0", 0), 0u) << told.causes[0].text;
  const RunRecord infinite = record_of("iter,loss,ms,tps\n1,11.4,994.7,inf\n2,11.3,990.1,3273\n", map);
  EXPECT_EQ(judge("values_possible", infinite).verdict, Verdict::contradicts);
  const RunRecord nan = record_of("iter,loss,ms,tps\n1,11.4,994.7,3201\n2,11.3,990.1,nan\n", map);
  EXPECT_EQ(judge("values_possible", nan).verdict, Verdict::holds);
  EXPECT_NE(judge("values_possible", nan)
                .note.find("1 number is NaN, not measured: the first, tokens/s, in line 3"),
            std::string::npos);
}

TEST(ImpossibleNumbersSpec, ANegativeMfuOfNanoGptIsNotTakenForNotMeasured) {
  const std::string steps =
      "iter 0: loss 10.9000, time 100.00ms, mfu -100.00%\niter 10: loss 8.0000, time 10.00ms, mfu 3.00%\n";
  EXPECT_TRUE(consistent(record_of(steps)));
  EXPECT_EQ(
      judge("mfu_possible", record_of(steps + "iter 20: loss 7.0000, time 10.00ms, mfu -4.00%\n")).verdict,
      Verdict::contradicts);
  EXPECT_EQ(
      judge("values_possible", record_of(steps + "iter 20: loss 7.0000, time -10.00ms, mfu 4.00%\n")).verdict,
      Verdict::contradicts);
}

/// `lines` steps of a trainer, each of them `times` times.
RunRecord repeated(const std::string& trainer, int times, bool alike) {
  std::ostringstream out;
  for (int i = 1; i <= 12; ++i)
    for (int k = 0; k < times; ++k) {
      const int ms = 1000 + 7 * (i % 5) + (alike ? 0 : k);
      const std::string loss = std::to_string(11 - 0.25 * i).substr(0, 6), n = std::to_string(i),
                        time = std::to_string(ms);
      if (trainer == "nanogpt")
        out << "iter " << n << ": loss " << loss << ", time " << time << ".25ms, mfu 31.00%\n";
      else if (trainer == "torchtitan")
        out << "[rank0]:[titan] 2025-11-20 09:13:30,240 - root - INFO - step:  " << n << "  loss: " << loss
            << "  grad_norm:  2.1  memory: 42.11GiB(53.23%)  tps: " << time
            << "  tflops: 23.17  mfu: 2.34%\n";
      else if (trainer == "kempnerforge")
        out << "[rank 0] INFO     [step " << n << "] loss=" << loss
            << " | lr=3.00e-04 | grad_norm=1.234 | tok/s=16,437 | mfu=21.4% | mem=60.0/80GB | step_time="
            << time << ".0s\n";
      else
        out << R"({"step": )" << n << R"(, "loss": )" << loss << R"(, "seconds": )" << time << "}\n";
    }
  return record_of(out.str(), trainer == "json" ? "step=step,loss=loss,seconds=seconds" : "");
}

TEST(ImpossibleNumbersSpec, ALogEachLineOfWhichIsThereTwiceIsDoubled) {
  for (const char* trainer : {"nanogpt", "torchtitan", "kempnerforge", "json"}) {
    EXPECT_EQ(judge("steps", repeated(trainer, 1, true)).verdict, Verdict::holds) << trainer;
    const Result told = judge("steps", repeated(trainer, 2, true));
    ASSERT_EQ(told.verdict, Verdict::contradicts) << trainer;
    ASSERT_FALSE(told.causes.empty());
    EXPECT_EQ(told.causes[0].id, "step_doubled") << trainer;
  }
  // Ranks that do not say which they are measure times of their own.
  EXPECT_EQ(judge("steps", repeated("nanogpt", 2, false)).verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit
