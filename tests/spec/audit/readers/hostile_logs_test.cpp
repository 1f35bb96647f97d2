// labels: unit property fault
// Logs as terminals, launchers and accidents leave them; and files that are none.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::hostile_logs_test {
namespace {

using tests::Disguise;
using tests::LogFormat;
using tests::refusal;
using tests::two_steps;

RunRecord read_one(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_log(in, "log", options);
}

TEST(HostileLogsSpec, ANegativeRatioOfLearningRatesHasAnIntervalThatHoldsIt) {
  const RunRecord run = read_one(
      "[rank 0] INFO     Training config: JobConfig(model=ModelConfig(dim=64), optimizer=OptimizerConfig("
      "lr=0.0003), scheduler=SchedulerConfig(name=<SchedulerType.cosine: 'cosine'>, min_lr_ratio=-4))\n"
      "[rank 0] INFO     [step 1] loss=11.7500 | lr=2.51e-04 | grad_norm=0.218 | tok/s=29,852 | mfu=35.9% | "
      "mem=45.0/140GB | step_time=4.39s\n");
  const auto& least = run.settings[static_cast<std::size_t>(Setting::learning_rate_min)];
  ASSERT_TRUE(least);
  EXPECT_TRUE(least->holds(least->value)) << least->low << " " << least->value << " " << least->high;
  EXPECT_NEAR(least->value, -0.0012, 1e-12);
}

RC_GTEST_PROP(HostileLogsSpec, DisguisesOfTextLogsLeaveTheirNumbers, ()) {
  const LogFormat format = *rc::gen::element(
      LogFormat::llm_tii, LogFormat::torchtitan, LogFormat::kempnerforge, LogFormat::megatron,
      LogFormat::nanogpt, LogFormat::llmc, LogFormat::llmq, LogFormat::hugging_face_console);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const tests::SimulatedRun run = tests::simulate(format, seed);
  const std::string log = tests::render(run);
  Disguise disguise;
  disguise.colours = *rc::gen::arbitrary<bool>();
  disguise.crlf = *rc::gen::arbitrary<bool>();
  disguise.byte_order_mark = *rc::gen::arbitrary<bool>();
  disguise.progress_bars = *rc::gen::arbitrary<bool>();
  disguise.chatter = *rc::gen::arbitrary<bool>();
  disguise.ranks = *rc::gen::element(Disguise::Ranks::none, Disguise::Ranks::torchrun, Disguise::Ranks::srun,
                                     Disguise::Ranks::mpirun);
  const RunRecord plain = read_one(log), bent = read_one(tests::disguise(log, disguise, seed));
  RC_ASSERT(bent.steps.size() == plain.steps.size());
  RC_ASSERT(bent.unread_lines == 0);
  RC_ASSERT(!bent.truncated);
  for (std::size_t i = 0; i < plain.steps.size(); ++i)
    for (std::size_t f = 0; f < field_count; ++f) {
      const auto &a = plain.steps[i].fields[f], &b = bent.steps[i].fields[f];
      if (static_cast<Field>(f) == Field::rank) continue;
      RC_ASSERT(a.has_value() == b.has_value());
      if (a && !(std::isnan(a->value) && std::isnan(b->value)))
        RC_ASSERT(a->low == b->low && a->high == b->high);
    }
  for (std::size_t s = 0; s < setting_count; ++s) {
    RC_ASSERT(plain.settings[s].has_value() == bent.settings[s].has_value());
    if (plain.settings[s]) RC_ASSERT(plain.settings[s]->value == bent.settings[s]->value);
  }
  RC_ASSERT(plain.gpu == bent.gpu && plain.model == bent.model && plain.dtype == bent.dtype);
}

RC_GTEST_PROP(HostileLogsSpec, NoLogCutAnywhereGivesANumberThatWasNotPrintedOrContradicts, ()) {
  const auto format = static_cast<LogFormat>(*rc::gen::inRange(0, static_cast<int>(tests::log_formats)));
  const tests::SimulatedRun run = tests::simulate(format, *rc::gen::arbitrary<std::uint64_t>());
  const std::string log = tests::render(run);
  ReadOptions options;
  options.map = tests::read_arguments(run).map;
  const RunRecord whole = read_one(log, options);
  const std::size_t cut = *rc::gen::inRange<std::size_t>(0, log.size());
  RunRecord part;
  try {
    part = read_one(log.substr(0, cut), options);
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::bad_data || error.code() == ExitCode::usage);
    return;
  }
  RC_ASSERT(part.steps.size() <= whole.steps.size());
  RC_ASSERT(contradictions(part) == "");
  for (std::size_t i = 0; i < part.steps.size(); ++i)
    for (std::size_t f = 0; f < field_count; ++f)
      if (const auto& read = part.steps[i].fields[f], &there = whole.steps[i].fields[f]; read) {
        RC_ASSERT(there.has_value());
        if (!(std::isnan(read->value) && std::isnan(there->value)))
          RC_ASSERT(read->low == there->low && read->high == there->high);
      }
}

RC_GTEST_PROP(HostileLogsSpec, LinesLostBeforeTheStepsContradictNothing, ()) {
  const LogFormat format = *rc::gen::element(
      LogFormat::llm_tii, LogFormat::torchtitan, LogFormat::kempnerforge, LogFormat::megatron,
      LogFormat::nanogpt, LogFormat::llmc, LogFormat::llmq, LogFormat::hugging_face_console);
  const tests::SimulatedRun run = tests::simulate(format, *rc::gen::arbitrary<std::uint64_t>());
  const std::string log = tests::render(run);
  const std::int64_t first = read_one(log).steps.front().line;
  std::istringstream in(log);
  std::string left;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);)
    if (++number >= first || *rc::gen::arbitrary<bool>()) left += line + "\n";
  RC_LOG() << left;
  RC_ASSERT(contradictions(read_one(left)) == "");
}

RC_GTEST_PROP(HostileLogsSpec, DamagedBytesEndInARecordOrOneLine, ()) {
  const auto format = static_cast<LogFormat>(*rc::gen::inRange(0, static_cast<int>(tests::log_formats)));
  const tests::SimulatedRun run = tests::simulate(format, *rc::gen::arbitrary<std::uint64_t>());
  std::string log = tests::render(run);
  for (int i = *rc::gen::inRange(1, 200); i > 0; --i)
    log[*rc::gen::inRange<std::size_t>(0, log.size())] = static_cast<char>(*rc::gen::inRange(0, 256));
  ReadOptions options;
  options.map = tests::read_arguments(run).map;
  const auto [code, message] = refusal(log, options);
  RC_ASSERT(code == ExitCode::done || code == ExitCode::bad_data || code == ExitCode::usage);
  RC_ASSERT(message.find('\n') == std::string::npos);
}

// Found by fuzzing: a rate below 0 was given an interval that did not hold it.
TEST(HostileLogsSpec, ANumberThatCannotBeLiesInItsOwnIntervalToo) {
  std::istringstream in(
      "[T] step     0 [ 12.5%] | time:  4185 ms | norm   3.77 | loss  10.32 | tps 82206 | sol 32.5%\n"
      "[T] step     1 [ 12.5%] | time:  4225 ms | norm   3.85 | loss   9.97 | tps -1430 | sol -32.5%\n");
  const auto runs = read_logs(in, "x", {});
  ASSERT_EQ(runs.size(), 1u);
  for (const Step& step : runs[0].steps)
    for (const auto& number : step.fields) {
      if (!number) continue;
      EXPECT_TRUE(number->low <= number->value && number->value <= number->high) << number->value;
    }
}

TEST(HostileLogsSpec, LinesThatCannotBeReadAreCountedAndQuoted) {
  const RunRecord run = read_one("chatter about iter 5\n" + std::string(two_steps) +
                                 "iter 20: loss abc, time 134.20ms, mfu 37.10%\n"
                                 "step 20: train loss 9.0, val loss 9.1\n"
                                 "iter 30: loss 8.1\x01, time 1e999ms, mfu 37.10%\n"
                                 "iter 40: loss " +
                                 std::string(2'000'000, '9') +
                                 ", time 1.00ms\n"
                                 "iter 50: loss 8.0, time 134.20ms, mfu 37.10%\n");
  EXPECT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.unread_lines, 3);
  ASSERT_EQ(run.unread_quotes.size(), 3u);
  EXPECT_EQ(run.unread_quotes[0].line, 4);
  EXPECT_EQ(run.unread_quotes[0].text, "iter 20: loss abc, time 134.20ms, mfu 37.10%");
  EXPECT_NE(run.unread_quotes[1].text.find("8.1\\x01"), std::string::npos);
  EXPECT_LE(run.unread_quotes[2].text.size(), 200u);
  EXPECT_EQ(run.steps[2].line, 8);
  EXPECT_EQ(run.lines, 8);
}

TEST(HostileLogsSpec, ALastLineWithoutItsEndIsReadOnlyWhenItIsWhole) {
  const RunRecord cut = read_one(std::string(two_steps) + "iter 20: loss 8.5, time 134.2");
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.steps.size(), 2u);
  EXPECT_EQ(cut.unread_lines, 1);
  const RunRecord whole = read_one(std::string(two_steps) + "iter 20: loss 8.5, time 134.20ms, mfu 37.00%");
  EXPECT_TRUE(whole.truncated);
  EXPECT_EQ(whole.steps.size(), 3u);
  EXPECT_FALSE(read_one(two_steps).truncated);
  // A peak cut to less than what is allocated.
  const std::string megatron =
      " iteration        1/      50 | consumed samples:           64 | elapsed time per iteration (ms): "
      "900.0 | "
      "learning rate: 1.0E-05 | global batch size:    64 | lm loss: 1.100000E+01 |\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 19948.0 | max allocated: ";
  EXPECT_FALSE(read_one(megatron + "12").steps.at(0)[Field::memory_peak]);
  EXPECT_EQ(read_one(megatron + "21123.0 | reserved: 22310.0 | max reserved: 22310.0\n")
                .steps.at(0)[Field::memory_peak]
                ->value,
            21123.0 * 0x1p20);
}

TEST(HostileLogsSpec, LostEscapeBytesLeaveColoursThatAreTakenOff) {
  const RunRecord run = read_one(
      "[titan] 2026-01-09 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.18GiB memory\n"
      "[titan] 2026-01-09 - root - INFO - [31mstep: 10  [32mloss:  6.4567  [38;5;208mgrad_norm:  1.2345  "
      "[36mmemory: 33.10GiB(41.80%)  [34mtps: 7,012  [36mtflops: 406.07  [35mmfu: 41.06%[39m\n");
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.steps[0][Field::tokens_per_second]->value, 7012);
  EXPECT_DOUBLE_EQ(run.steps[0][Field::mfu]->value, 0.4106);
  EXPECT_EQ(run.gpu, "NVIDIA H100 80GB HBM3");
}

/// Lines may be 1 MiB long, of words that begin other trainers' steps again and again: each is looked at a
/// few times, not from each place to the end of the line (which takes minutes).
TEST(HostileLogsSpec, AWordAgainAndAgainTakesNoTime) {
  const std::string own =
      " iteration        1/    1000 | consumed samples:          128 | elapsed time per iteration "
      "(ms): 5114.7 | learning rate: 1.0E-04 | global batch size:   128 | lm loss: 1.1E+01 | "
      "number of skipped iterations:   0 |\n";
  for (const LineFormat& format : line_formats())
    for (const std::string_view word : format.of_steps)
      for (const std::string& behind : {std::string(), std::string(" number of skipped iterations: ")}) {
        std::string log = own + own + behind;
        while (log.size() < Blocks::longest) (log += word) += ' ';
        log += '\n';
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_NO_THROW(tests::read_text(log + own));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        EXPECT_LT(took.count(), 5.0) << word;
      }
}

}  // namespace
}  // namespace assay::spec::audit::hostile_logs_test
