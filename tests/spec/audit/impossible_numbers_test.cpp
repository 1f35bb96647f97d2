// labels: unit
// Lies that no other number of the log contradicts: a speed above the peak, times below 0, a log there twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "spec/audit/conventions.hpp"
#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"

namespace assay::spec::audit::impossible_numbers_test {
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

TEST(ImpossibleNumbersSpec, TheFirstMfuThatIsImpossibleIsTheOneTold) {
  const std::string map = "step=iter,loss=loss,mfu=mfu:%";
  const Result told =
      judge("mfu_possible", record_of("iter,loss,mfu\n1,10.5,250\n2,10.4,41\n3,10,42\n4,10,40\n", map));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_DOUBLE_EQ(told.printed, 2.5);
  EXPECT_DOUBLE_EQ(told.off_by, 2.5);
  EXPECT_EQ(told.lines, (std::vector<std::int64_t>{2}));
  const Result nan =
      judge("mfu_possible", record_of("iter,loss,mfu\n1,10.5,40\n2,10.4,41\n3,10,nan\n4,10,40\n", map));
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
      judge("mfu_possible", record_of("iter,loss,mfu\n1,10.5,250\n", "step=iter,loss=loss,mfu=mfu:%"))
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
  EXPECT_EQ(record_of("[\n" + option("e4m3") + ",\n" + step + "\n]\n").dtype, "fp8");
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

/// Llama 3 8B as Megatron-LM prints it on 64 GPUs, TFLOP/s of one GPU times `flops`, samples times `samples`.
RunRecord megatron(double flops, double samples = 1) {
  RunRecord r;
  r.format.name = "megatron";
  r.format.flops_rate = Scope::gpu;
  r.format.convention = "megatron";
  r.model = "llama3-8b";
  r.gpu = "NVIDIA H100 80GB HBM3";
  for (const auto& [setting, number] :
       {std::pair(Setting::gpus, 64.0), std::pair(Setting::data_parallel, 8.0),
        std::pair(Setting::tensor_parallel, 8.0), std::pair(Setting::pipeline_parallel, 1.0),
        std::pair(Setting::sequences, 128.0), std::pair(Setting::micro, 1.0),
        std::pair(Setting::accumulation, 16.0), std::pair(Setting::sequence_length, 4096.0)})
    r[setting] = exactly(number, 1);
  const auto per_token = counted_flops(Evidence(r), "megatron");
  for (int i = 1; i <= 20; ++i) {
    const double seconds = 9 + 0.01 * (i % 3), rate = flops * per_token->middle() * 128 * 4096 / seconds / 64;
    Step step;
    step.line = i;
    step[Field::step] = exactly(5.0 * i, i);
    step[Field::seconds] = Printed{seconds, seconds - 5e-5, seconds + 5e-5, i};
    step[Field::flops_rate] = Printed{rate, rate - 5e10, rate + 5e10, i};
    step[Field::sequences_total] = exactly(640.0 * i * samples, i);
    r.steps.push_back(step);
  }
  r.steps_seen = 20;
  return r;
}

TEST(ImpossibleNumbersSpec, OneDisagreeingColumnIsNotExplainedByTwoMistakes) {
  ASSERT_TRUE(consistent(megatron(1))) << contradictions(megatron(1));
  for (const double factor : {1.5, 2.0, 3.0, 4.0}) {
    const RunRecord record = megatron(factor);
    const Audit one = audit(record);
    ASSERT_TRUE(one.contradicts);
    const Reading& best = one.readings.front();
    ASSERT_EQ(best.changes.size(), 1u) << factor;
    EXPECT_EQ(best.changes[0].text.find("MFU"), std::string::npos) << best.changes[0].text;
    EXPECT_EQ(best.changes[0].text.find("accumulation"), std::string::npos) << best.changes[0].text;
    // Batch and time agree: 128 x 4,096 tokens in 9 s.
    EXPECT_NEAR(best.corrected.tokens_per_second->middle(), 128 * 4096 / 9.01, 150) << factor;
  }
  const RunRecord half = megatron(1, 0.5);
  const Audit samples = audit(half);
  ASSERT_TRUE(samples.contradicts);
  EXPECT_EQ(samples.readings.front().changes.size(), 1u);
}

TEST(ImpossibleNumbersSpec, WithoutAConventionAnMfuIsHeldToAllOfThem) {
  const auto log = [](double mfu) {
    std::ostringstream out;
    for (int i = 1; i <= 20; ++i)
      out << R"({"step": )" << i << R"(, "loss": )" << 12 - 0.1 * i << R"(, "tps": )" << 52000 + i
          << R"(, "mfu": )" << mfu << "}\n";
    return record_of(out.str(), "step=step,loss=loss,tokens_per_second=tps,mfu=mfu",
                     "model=llama3-8b,gpus=8,gpu=NVIDIA H100 80GB HBM3,sequence_length=4096");
  };
  EXPECT_TRUE(consistent(log(0.36))) << contradictions(log(0.36));
  EXPECT_TRUE(consistent(log(0.32))) << contradictions(log(0.32));
  const RunRecord sparse = log(0.17);
  const Audit one = audit(sparse);
  ASSERT_TRUE(one.contradicts);
  ASSERT_EQ(one.readings.front().changes.size(), 1u);
  EXPECT_EQ(one.readings.front().changes[0].id, "peak_sparse");
}

TEST(ImpossibleNumbersSpec, NanoGptsCountLeavesOutPositionsAndMayHaveNoBiases) {
  const auto log = [](const std::string& count) {
    return record_of("number of parameters: " + count +
                         "M\niter 0: loss 10.9000, time 100.00ms, mfu -100.00%\n"
                         "iter 10: loss 8.0000, time 100.00ms, mfu 3.00%\n",
                     "", "model=gpt2");
  };
  // 124,439,808 - 1,024 x 768, with and without 102,144 biases, of 50,257 or 50,304 entries.
  for (const char* count : {"123.65", "123.55", "123.59", "123.69"})
    EXPECT_EQ(judge("parameters", log(count)).verdict, Verdict::holds) << count;
  EXPECT_EQ(judge("parameters", log("120.00")).verdict, Verdict::contradicts);
}

TEST(ImpossibleNumbersSpec, AWrongNumberOfGpusIsToldByTheAxes) {
  RunRecord r = megatron(1);
  r[Setting::gpus] = exactly(256, 1);
  const Audit one = audit(r);
  ASSERT_TRUE(one.contradicts);
  EXPECT_EQ(one.readings.front().changes.at(0).text, "64 GPUs ran, not 256");
  r.gpu.clear();
  EXPECT_EQ(audit(r).readings.front().changes.at(0).text, "64 ranks ran, not 256");
}

TEST(ImpossibleNumbersSpec, TheRatesOfHuggingFacesSummaryAreHeldToItsTime) {
  const auto log = [](const std::string& steps, const std::string& samples) {
    std::ostringstream out;
    for (int i = 1; i <= 100; ++i)
      out << "{'loss': 1.5, 'grad_norm': 1.2, 'learning_rate': " << (i < 100 ? 2e-7 * (100 - i) : 0.0)
          << ", 'epoch': " << i / 50.0 << "}\n";
    out << "{'train_runtime': 200.0, 'train_samples_per_second': " << samples
        << ", 'train_steps_per_second': " << steps << ", 'train_loss': 1.2, 'epoch': 2.0}\n";
    return record_of(
        out.str(), "",
        "max_steps=100,sequences=16,schedule=linear,learning_rate=2e-5,warmup_steps=0,learning_rate_min=0");
  };
  EXPECT_TRUE(consistent(log("0.5", "8.0"))) << contradictions(log("0.5", "8.0"));
  EXPECT_EQ(judge("learning_rate", log("0.5", "8.0")).verdict, Verdict::holds);
  EXPECT_EQ(judge("average_steps_rate", log("2.0", "8.0")).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("average_sequences_rate", log("0.5", "64.0")).verdict, Verdict::contradicts);
}

TEST(ImpossibleNumbersSpec, TorchtitansStampsAreAClock) {
  const auto log = [](int tokens_per_second) {
    std::ostringstream out;
    out << "[titan] 2025-11-20 09:13:20,000 - root - INFO - Trainer is initialized with local batch size 1, "
           "global batch "
           "size 8, gradient accumulation steps 1, sequence length 8192, total steps 300 (warmup 20).\n"
           "[titan] 2025-11-20 09:13:20,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], "
           "[8]\n";
    for (int i = 1; i <= 30; ++i)
      out << "[titan] 2025-11-20 09:" << 14 + 10 * i / 60 << ":" << (10 * i % 60 < 10 ? "0" : "")
          << 10 * i % 60 << ",120 - root - INFO - step: " << 10 * i
          << "  loss:  8.0000  grad_norm:  2.1  memory: 42.11GiB(53.23%)  tps: " << tokens_per_second
          << "  tflops: 23.17  mfu: 2.34%\n";
    return record_of(out.str());
  };
  // 10 steps of 8,192 tokens per GPU in 10 s.
  EXPECT_EQ(judge("rate_wall_clock", log(8192)).verdict, Verdict::holds);
  EXPECT_EQ(judge("rate_wall_clock", log(4096)).verdict, Verdict::contradicts);
  // A mean over the very steps that the stamps enclose leaves no room for 2 % more time than they show.
  EXPECT_EQ(judge("rate_wall_clock", log(8032)).verdict, Verdict::contradicts);
}

TEST(ImpossibleNumbersSpec, ARecordWithBlanksBetweenItsTokensIsOurs) {
  const RunRecord r = record_of(
      R"({"event": "step", "step": 1, "time": "2026-11-21T10:00:00Z", "loss": 4.1, "seconds": 0.5, "tokens": 4096})"
      "\n");
  EXPECT_EQ(r.format.name, "assay");
  ASSERT_EQ(r.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(r.steps[0][Field::seconds]->value, 0.5);
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
    EXPECT_EQ(judge("values_possible", record_of(with_length(trainer, "4096"))).verdict, Verdict::holds)
        << trainer;
    for (const char* length : {"-4096", "0"}) {
      const Result told = judge("values_possible", record_of(with_length(trainer, length)));
      ASSERT_EQ(told.verdict, Verdict::contradicts) << trainer << " " << length;
      EXPECT_EQ(told.lines, std::vector<std::int64_t>{1}) << trainer;
      EXPECT_EQ(told.causes.at(0).id, "size_impossible") << trainer;
      EXPECT_NE(told.causes.at(0).text.find("sequence_length is " +
                                            std::string(length == std::string("0") ? "0" : "-4,096")),
                std::string::npos)
          << told.causes.at(0).text;
    }
    // Not set.
    EXPECT_EQ(judge("values_possible", record_of(with_length(trainer, "-1"))).verdict, Verdict::holds)
        << trainer;
  }
}

}  // namespace
}  // namespace assay::spec::audit::impossible_numbers_test
