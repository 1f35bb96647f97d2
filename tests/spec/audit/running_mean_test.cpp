// labels: unit property
// Printed means over steps, held to the steps: llm.c's tokens/s, and shares that roundings leave open.
#include "spec/audit/running_mean.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::running_mean_test {
namespace {

using tests::read_text;

constexpr double tokens = 524288;

/// llm.c's lines from step `begin` on: the first step of a start takes `slow` times the others; from line
/// `wrong` on the rate is multiplied. A mean begins at zero with the log, as after a checkpoint.
std::string llm_c(int begin, int count, double slow, double factor, int wrong = 1, bool single = false) {
  std::string out =
      "| micro batch size B    | 64                                                 |\n"
      "| sequence length T     | 1024                                               |\n"
      "| total batch size      | 524288                                             |\n"
      "| num_processes         | 8                                                  |\n";
  double mean = 0;
  for (int i = 0; i < count; ++i) {
    const int number = begin + i;
    const double ms = (i == 0 ? slow : 1) * (120 + 1.2 * std::sin(1.7 * number)),
                 rate = tokens / (std::round(ms * 100) / 1e5);
    if (number > 1) mean = 0.95 * mean + 0.05 * rate;
    const double shown = number == 1 || single ? rate : mean / (1 - std::pow(0.95, number - 1));
    char line[256];
    std::snprintf(line, sizeof line,
                  "step %4d/19560 | loss %.6f (+nanz)| norm 3.1000 (+nanz)| lr 6.00e-04 | %.2f ms | -100.0%% "
                  "bf16 MFU | %.0f tok/s\n",
                  number, 10 - 0.01 * i, ms, shown * (i + 1 >= wrong ? factor : 1));
    out += line;
  }
  return out;
}

/// nanoGPT's lines of a log whose head is lost: the mean has begun before the first of them, whose number
/// says nothing. Times differ by less than what roundings leave open, so that single values nearly explain
/// them too.
TEST(RunningMeanSpec, AMeanThatBeganBeforeItsLogIsNoSingleValue) {
  const std::string head =
      "tokens per iteration will be: 491,520\nbatch_size = 12\nblock_size = 1024\n"
      "gradient_accumulation_steps = 40\nn_layer = 12\nn_head = 12\nn_embd = 768\nnumber of parameters: "
      "123.59M\n";
  const char* const lines[] = {"250.47ms, mfu 67.21%", "250.31ms, mfu 67.21%", "250.24ms, mfu 67.22%",
                               "249.69ms, mfu 67.24%", "249.87ms, mfu 67.25%", "249.65ms, mfu 67.27%",
                               "250.30ms, mfu 67.26%"};
  std::string text = head;
  for (int i = 0; i < 7; ++i)
    text += "iter " + std::to_string(800 + 100 * i) + ": loss 3.4454, time " + lines[i] + "\n";
  EXPECT_FALSE(audit(read_text(text, "gpus=8,gpu=A100-SXM4-80GB")).contradicts);
}

/// nanoGPT's lines, every `every` steps, of a program that starts again before step `again`: it measures from
/// its fifth step on, and its mean is then the step's own. The lines' numbers from `wrong` on are multiplied.
std::string nanogpt_resumed(int again, int every, double factor = 1, int wrong = 1 << 30) {
  const std::string head =
      "tokens per iteration will be: 491,520\nbatch_size = 12\nblock_size = 1024\n"
      "gradient_accumulation_steps = 40\nn_layer = 12\nn_head = 12\nn_embd = 768\n";
  std::string out = head + "number of parameters: 123.59M\n";
  double mean = -1;
  for (int i = 0; i < 400; ++i) {
    if (i == again) {
      out += head + "Resuming training from out\nnumber of parameters: 123.59M\n";
      mean = -1;
    }
    if (i % every != 0) continue;
    // 6 N + 12 L D T of one rank's 61,440 tokens; the first steps of a start are slow.
    const int local = i < again ? i : i - again;
    const double ms = std::round(25000 * (local < 2 ? 8 : 1) * (1 + 0.01 * std::sin(1.7 * i))) / 100,
                 own = (6 * 123.587328e6 + 12.0 * 12 * 768 * 1024) * 61440 / (ms / 1e3) / 312e12;
    if (local >= 5) mean = mean < 0 ? own : 0.9 * mean + 0.1 * own;
    char line[128];
    std::snprintf(line, sizeof line, "iter %d: loss 3.4454, time %.2fms, mfu %.2f%%\n", i, ms,
                  mean < 0 ? -100 : 100 * mean * (i >= wrong ? factor : 1));
    out += line;
  }
  return out;
}

TEST(RunningMeanSpec, AMeanThatBeginsAnewAfterARestartIsHeldFromItsFirstLine) {
  for (const int every : {1, 10})
    // On a line, just behind one (then the first line is of the program's ninth step), in between.
    for (const int again : {200, 201, 197}) {
      const auto judged = [&](double factor, int wrong) {
        return judge("mfu_of_batch", read_text(nanogpt_resumed(again, every, factor, wrong), "gpus=8"));
      };
      EXPECT_EQ(judged(1, 0).verdict, Verdict::holds) << every << ", " << again;
      for (const double factor : {0.9, 1.1}) {
        const Result told = judged(factor, again + 5);
        EXPECT_EQ(told.verdict, Verdict::contradicts) << every << ", " << again << ", " << factor;
      }
    }
}

/// The first step is printed alone and left out of the mean: however slow, it bounds no later rate.
TEST(RunningMeanSpec, ASlowFirstStepForgivesNoLaterRate) {
  for (const double slow : {1.0, 1.4, 8.0}) {
    EXPECT_EQ(judge("rate_time", read_text(llm_c(1, 30, slow, 1))).verdict, Verdict::holds) << slow;
    for (const double factor : {0.4, 0.5, 0.8, 0.98, 1.02, 2.5}) {
      const Result result = judge("rate_time", read_text(llm_c(1, 30, slow, factor, 2)));
      EXPECT_EQ(result.verdict, Verdict::contradicts) << slow << ", " << factor;
      EXPECT_NEAR(result.off_by, factor, 1e-3) << slow;
    }
  }
}

TEST(RunningMeanSpec, AHalvedRateIsNoPadding) {
  const RunRecord record = read_text(llm_c(1, 30, 1.4, 0.5));
  for (const Reading& reading : audit(record).readings)
    for (const Change& change : reading.changes) EXPECT_NE(change.id, "rate_counts_padding") << change.text;
}

/// train_gpt2.py prints each step's own rate in the same words.
TEST(RunningMeanSpec, RatesOfSingleStepsAreRatesToo) {
  EXPECT_EQ(judge("rate_time", read_text(llm_c(1, 30, 3, 1, 1, true))).verdict, Verdict::holds);
  EXPECT_EQ(judge("rate_time", read_text(llm_c(1, 30, 3, 0.9, 1, true))).verdict, Verdict::contradicts);
}

/// After a checkpoint the mean begins at nothing, yet is divided by 1 - 0.95^step: its first rates are low.
TEST(RunningMeanSpec, AMeanThatBeginsAnewAfterACheckpointHolds) {
  for (const int count : {1, 2, 3, 4, 40})
    EXPECT_EQ(judge("rate_time", read_text(llm_c(5001, count, 1, 1))).verdict, Verdict::holds) << count;
  EXPECT_EQ(judge("rate_time", read_text(llm_c(5001, 40, 1, 0.9))).verdict, Verdict::contradicts);
}

/// Lines that were lost leave their steps open, and no more.
TEST(RunningMeanSpec, LostLinesAreForgiven) {
  for (const bool truthful : {true, false}) {
    std::istringstream in(llm_c(1, 60, 2, truthful ? 1 : 0.8));
    std::string log;
    int number = 0;
    for (std::string line; std::getline(in, line); ++number)
      if (number < 4 || (number > 6 && number % 9 != 0 && number != 30)) log += line + "\n";
    EXPECT_EQ(judge("rate_time", read_text(log)).verdict == Verdict::holds, truthful);
  }
}

/// One wrong line is that line's alone: those behind it are not held to it.
TEST(RunningMeanSpec, OneWrongTimeIsOneLine) {
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const tests::SimulatedRun run = tests::simulate(tests::LogFormat::llmc, seed);
    tests::Report report = tests::report(run);
    *report.steps[9][Field::seconds] *= 1.3;
    const RunRecord record = read_text(render(run, report));
    const Result result = judge("rate_time", record);
    EXPECT_EQ(result.contradicted, 1) << seed;
    ++drawn;
  }
  EXPECT_EQ(drawn, 10);
}

/// Half a second of rounding leaves a range; the printed numbers lie where they lie in it.
TEST(RunningMeanSpec, AShareIsThatOfThePrintedNumbersAndItsRangeIsTold) {
  std::string log;
  for (int i = 1; i <= 4; ++i)
    log += "{\"step\": " + std::to_string(i) + ", \"tokens_per_second\": 100000, \"step_time\": 0.5}\n";
  const RunRecord record =
      read_text(log, "tokens_per_step=65536,gpus=1", "tokens_per_second=tokens_per_second,seconds=step_time");
  const Audit whole = audit(record);
  ASSERT_FALSE(whole.readings.front().changes.empty());
  const Change& change = whole.readings.front().changes.front();
  EXPECT_EQ(change.id, "rate_counts_padding");
  EXPECT_NE(change.text.find("about 23.7 % ("), std::string::npos) << change.text;
  const Interval rate = *whole.readings.front().corrected.tokens_per_second;
  EXPECT_TRUE(rate.holds(65536 / 0.5)) << rate.low << " .. " << rate.high;
  EXPECT_TRUE(rate.holds(65536 / 0.46)) << rate.low << " .. " << rate.high;
}

/// A log that starts again on every third line: places looked at grow as the log does, not as its square.
TEST(RunningMeanSpec, StartsAreFoundInOnePass) {
  for (const std::size_t starts : {20u, 200u, 2000u}) {
    RunRecord record;
    record.format.name = "llmc";
    for (std::size_t i = 0; i < 3 * starts; ++i) {
      Step step;
      step.line = static_cast<std::int64_t>(2 * i + 2);
      step[Field::step] = exactly(static_cast<double>(i % 3 + 1), step.line);
      step[Field::tokens_per_second] = exactly(1e6, step.line);
      record.steps.push_back(step);
      if (i % 3 == 0 && i > 0) record.restarts.push_back({step.line - 1, std::nullopt});
    }
    const Evidence evidence(record);
    ASSERT_EQ(evidence.stretches.size(), starts);
    Comparison to;
    Means means(evidence, Field::tokens_per_second, true, to);
    for (std::size_t i = 0; i < 3 * starts; ++i)
      means.add(i, *record.steps[i][Field::tokens_per_second], {1e6, 1e6}, 1e6);
    means.finish();
    EXPECT_LE(means.looked_at(), 3 * starts + starts + starts);
    EXPECT_GE(means.looked_at(), 3 * starts);
  }
}

/// llm.c's lines of 4 ranks, of which the batch is lost: the first step takes ten times as long, so that a
/// mean over some of the steps may be four times another. The first line is one step alone, and says whose
/// peak it is.
TEST(RunningMeanSpec, ALineThatDecidesWhosePeakItIsDecidesForAll) {
  std::string out =
      "| peak TFlops           | 312.0                                              |\n"
      "| sequence length T     | 512                                                |\n"
      "| num_layers L          | 24                                                 |\n"
      "| num_heads NH          | 16                                                 |\n"
      "| channels C            | 1024                                               |\n"
      "| num_parameters        | 354871296                                          |\n"
      "| num_processes         | 4                                                  |\n";
  // 6 N + 6 L D T, N without positions; 49,152 tokens a step.
  const double flops = 6 * (354871296.0 - 1024 * 1024) + 6 * 24 * 1024 * 512.0;
  double mean = 0;
  for (int step = 1; step <= 26; ++step) {
    const double seconds = (step == 1 ? 3.0 : 0.3) * (1 + 0.01 * std::sin(1.7 * step)),
                 rate = 49152 / seconds;
    if (step > 1) mean = 0.95 * mean + 0.05 * rate;
    const double shown = step == 1 ? rate : mean / (1 - std::pow(0.95, step - 1));
    char line[256];
    std::snprintf(line, sizeof line,
                  "step %4d/26 | loss %.6f (+nanz)| norm 1.1000 (+0.25z)| lr 6.00e-04 | %.2f ms | %.1f%% "
                  "bf16 MFU | %.0f tok/s\n",
                  step, 10.9 - 0.1 * step, 1e3 * seconds, 100 * rate * flops / 4 / 312e12, shown);
    out += line;
  }
  EXPECT_EQ(contradictions(read_text(out)), "");
}

}  // namespace
}  // namespace assay::spec::audit::running_mean_test
