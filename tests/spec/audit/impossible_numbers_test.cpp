// labels: unit
// Lies that no other number of the log contradicts: times and sizes below 0, a log that is there twice.
// Speeds above the peak: impossible_speeds_test.cpp.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::impossible_numbers_test {
namespace {

using tests::read_mapped;

TEST(ImpossibleNumbersSpec, NegativeAndInfiniteNumbersContradictAndNanIsCounted) {
  const std::string map = "step=iter,loss=loss,seconds=ms:ms,tokens_per_second=tps";
  const RunRecord negative = read_mapped("iter,loss,ms,tps\n1,11.4,-994.7,3294\n2,11.3,990.1,-3273\n", map);
  const Result told = judge("values_possible", negative);
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(told.causes.at(0).text.rfind("step time is below 0", 0), 0u) << told.causes[0].text;
  const RunRecord infinite = read_mapped("iter,loss,ms,tps\n1,11.4,994.7,inf\n2,11.3,990.1,3273\n", map);
  EXPECT_EQ(judge("values_possible", infinite).verdict, Verdict::contradicts);
  const RunRecord nan = read_mapped("iter,loss,ms,tps\n1,11.4,994.7,3201\n2,11.3,990.1,nan\n", map);
  EXPECT_EQ(judge("values_possible", nan).verdict, Verdict::holds);
  EXPECT_NE(judge("values_possible", nan)
                .note.find("1 number is NaN, not measured: the first, tokens/s, in line 3"),
            std::string::npos);
}

TEST(ImpossibleNumbersSpec, ANegativeMfuOfNanoGptIsNotTakenForNotMeasured) {
  const std::string steps =
      "iter 0: loss 10.9000, time 100.00ms, mfu -100.00%\niter 10: loss 8.0000, time 10.00ms, mfu 3.00%\n";
  EXPECT_TRUE(consistent(read_mapped(steps)));
  EXPECT_EQ(
      judge("mfu_possible", read_mapped(steps + "iter 20: loss 7.0000, time 10.00ms, mfu -4.00%\n")).verdict,
      Verdict::contradicts);
  EXPECT_EQ(judge("values_possible", read_mapped(steps + "iter 20: loss 7.0000, time -10.00ms, mfu 4.00%\n"))
                .verdict,
            Verdict::contradicts);
}

/// A header of each trainer that says a length, and a step line.
std::string with_length(const std::string& trainer, const std::string& length) {
  if (trainer == "nanogpt")
    return "block_size = " + length + "\niter 0: loss 10.9, time 100.00ms, mfu -100.00%\n";
  if (trainer == "torchtitan")
    return "[titan] - Trainer is initialized with local batch size 1, global batch size 8, gradient "
           "accumulation "
           "steps 1, sequence length " +
           length +
           ", total steps 200 (warmup 200)\n[titan] - step:  1  loss: 11.9  grad_norm:  3.1  memory: "
           "48.25GiB(61.00%)  tps: 728\n";
  if (trainer == "megatron")
    return "  seq_length ...................................... " + length +
           "\n iteration        1/    1000 | consumed samples:          128 | elapsed time per iteration "
           "(ms): "
           "8158.9 | learning rate: 3.000000E-05 | global batch size:   128 | lm loss: 1.1E+01 | loss scale: "
           "1.0 "
           "| grad norm: 1.0 |\n";
  if (trainer == "llmc")
    return "| sequence length T     | " + length +
           " |\nstep    1/100 | loss 3.500000 (+nanz)| norm 15.3000 (+nanz)| lr 8.57e-07 | 359.74 ms | 46.9% "
           "bf16 "
           "MFU | 1457400 tok/s\n";
  return "[rank 0] INFO     Training config: JobConfig(train=TrainConfig(batch_size=4, seq_len=" + length +
         ", max_steps=30, grad_accum_steps=4))\n[rank 0] INFO     [step 1] loss=11.75 | grad_norm=0.112 | "
         "tok/s=29,800 | mfu=35.8% | mem=45.0/140GB | step_time=4.40s\n";
}

TEST(ImpossibleNumbersSpec, ALengthBelowOneIsSaid) {
  for (const char* trainer : {"nanogpt", "torchtitan", "megatron", "llmc", "kempnerforge"}) {
    EXPECT_EQ(judge("values_possible", read_mapped(with_length(trainer, "4096"))).verdict, Verdict::holds)
        << trainer;
    for (const char* length : {"-4096", "0"}) {
      const Result told = judge("values_possible", read_mapped(with_length(trainer, length)));
      ASSERT_EQ(told.verdict, Verdict::contradicts) << trainer << " " << length;
      EXPECT_EQ(told.lines, std::vector<std::int64_t>{1}) << trainer;
      EXPECT_EQ(told.causes.at(0).id, "size_impossible") << trainer;
      EXPECT_NE(told.causes.at(0).text.find("sequence_length is " +
                                            std::string(length == std::string("0") ? "0" : "-4,096")),
                std::string::npos)
          << told.causes.at(0).text;
    }
    // Not set.
    EXPECT_EQ(judge("values_possible", read_mapped(with_length(trainer, "-1"))).verdict, Verdict::holds)
        << trainer;
  }
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
  return read_mapped(out.str(), trainer == "json" ? "step=step,loss=loss,seconds=seconds" : "");
}

TEST(ImpossibleNumbersSpec, ALogEachLineOfWhichIsThereTwiceIsDoubled) {
  for (const char* trainer : {"nanogpt", "torchtitan", "kempnerforge", "json"}) {
    EXPECT_EQ(judge("steps", repeated(trainer, 1, true)).verdict, Verdict::holds) << trainer;
    // Rows of a table are doubled; lines of a log may be printed by two handlers, which is told. Not by
    // three.
    const bool table = std::string_view(trainer) == "json";
    const Result twice = judge("steps", repeated(trainer, 2, true));
    EXPECT_EQ(twice.verdict, table ? Verdict::contradicts : Verdict::holds) << trainer;
    EXPECT_EQ(twice.note.starts_with("every line is printed twice"), !table) << twice.note;
    const Result told = judge("steps", repeated(trainer, 3, true));
    ASSERT_EQ(told.verdict, Verdict::contradicts) << trainer;
    ASSERT_FALSE(told.causes.empty());
    EXPECT_EQ(told.causes[0].id, "step_doubled") << trainer;
  }
  // Ranks that do not say which they are measure times of their own.
  EXPECT_EQ(judge("steps", repeated("nanogpt", 2, false)).verdict, Verdict::holds);
}

TEST(ImpossibleNumbersSpec, ARecordWithBlanksBetweenItsTokensIsOurs) {
  const RunRecord r = read_mapped(
      R"({"event": "step", "step": 1, "loss": 4.1, "z_loss": 0, "gradient_norm": 1.5, "clip_coefficient": 0.6, )"
      R"("learning_rate": 0.001, "tokens": 4096, "valid_tokens": 4096, "seconds": 0.5, "tokens_per_second": 8192, )"
      R"("phases": {"data_wait": 0, "forward": 0.2, "backward": 0.3, "reduce": 0, "clip": 0, "update": 0, )"
      R"("checkpoint": 0, "other": 0}, "sample_hash": "ab", "resident_bytes": 1, "device_peak_bytes": 0})"
      "\n");
  EXPECT_EQ(r.format.name, "assay");
  ASSERT_EQ(r.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(r.steps[0][Field::seconds]->value, 0.5);
}

}  // namespace
}  // namespace assay::spec::audit::impossible_numbers_test
