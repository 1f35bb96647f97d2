// labels: unit property fault
// Logs as terminals, launchers and accidents leave them; and files that are none.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/simulated_run.hpp"

namespace assay::spec::audit::hostile_logs_test {
namespace {

using tests::Disguise;
using tests::LogFormat;

std::vector<RunRecord> read_all(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_logs(in, "log", options);
}

RunRecord read_one(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_log(in, "log", options);
}

constexpr const char* two_steps =
    "iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%\n"
    "iter 10: loss 9.1234, time 134.20ms, mfu 37.10%\n";

/// Code and message of the error that reading `log` ends in.
std::pair<ExitCode, std::string> refusal(const std::string& log, const ReadOptions& options = {}) {
  try {
    read_all(log, options);
  } catch (const UserError& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::done, ""};
}

void expect_refused(const std::string& log, ExitCode code, const std::string& says,
                    const ReadOptions& options = {}) {
  const auto [got, message] = refusal(log, options);
  EXPECT_EQ(static_cast<int>(got), static_cast<int>(code)) << message;
  EXPECT_NE(message.find(says), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 600u);
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

TEST(HostileLogsSpec, WhatIsNoLogIsRefusedInOneLine) {
  expect_refused("", ExitCode::bad_data, "is empty");
  expect_refused(" \n\r\n\t\n", ExitCode::bad_data, "is empty");
  expect_refused(std::string(5000, '\0'), ExitCode::bad_data, "not text");
  expect_refused(
      "\x7f"
      "ELF\x02\x01\x01" +
          std::string(500, '\x03'),
      ExitCode::bad_data, "not text");
  expect_refused(
      "\x1f\x8b\x08"
      "abcdef",
      ExitCode::bad_data, "compressed");
  expect_refused(std::string("\xff\xfei\0t\0", 6), ExitCode::bad_data, "UTF-16");
  expect_refused("hello\nworld\n", ExitCode::bad_data, "no step line of a known trainer in 2 lines");
  expect_refused(std::string(3'000'000, 'x'), ExitCode::bad_data, "no step line");
  expect_refused("{\"iter\": 1", ExitCode::bad_data, "ends in the middle");
  expect_refused("{\n  \"log_history\": [\n {\"step\": 1, \"loss\": 2.0},\n", ExitCode::bad_data,
                 "ends in the middle");
  expect_refused("{\n \"a\": 1\n}\n", ExitCode::bad_data, "no known trainer");
  expect_refused(std::string(100000, '['), ExitCode::bad_data, "log");
  expect_refused("[{\"a\":" + std::string(100000, '['), ExitCode::bad_data, "deep");
  expect_refused("{\n\"log_history\": [{\"loss\": " + std::string(1'000'000, '9') + "}]}", ExitCode::bad_data,
                 "digits");
}

TEST(HostileLogsSpec, ADamagedFirstLineOfJsonLinesIsCountedAndQuoted) {
  const std::string rest = "{\"step\":2,\"loss\":2.5}\n{\"step\":3,\"loss\":2.4}\n";
  for (const std::string& first : {std::string("{\"step\":1,\"loss\":2.6"), std::string("{\"step\":1,"),
                                   "{\"step\":1,\"loss\":" + std::string(10000, '1') + "}"}) {
    const RunRecord run = read_one(first + "\n" + rest);
    EXPECT_EQ(run.steps_seen, 2) << first.substr(0, 40);
    EXPECT_EQ(run.unread_lines, 1);
    ASSERT_EQ(run.unread_quotes.size(), 1u);
    EXPECT_EQ(run.unread_quotes[0].line, 1);
  }
  EXPECT_EQ(read_one("{\"step\":1,\"loss\":2.6\n{\"step\":2,\"loss\":2.5}\n").steps_seen, 1);
  // Documents stay documents, however their lines are broken.
  const std::string element = "{\"step\": 10, \"loss\": 2.5}";
  for (const std::string& document :
       {"{\"log_history\": [" + element + "]}\n", "{\"log_history\": [\n" + element + "\n]}\n",
        "{\"log_history\": [\n" + element + ",\n{\"step\": 20, \"loss\": 2.4}\n]}\n"}) {
    const RunRecord run = read_one(document);
    EXPECT_EQ(run.format.name, "hugging_face") << document;
    EXPECT_GE(run.steps_seen, 1) << document;
  }
  expect_refused("{\"log_history\": [\n" + element + "\n", ExitCode::bad_data, "ends in the middle");
}

TEST(HostileLogsSpec, WhatCannotBeUnderstoodIsAUsageError) {
  const std::string csv = "iter,loss\n1,2.5\n";
  expect_refused(csv, ExitCode::usage, "did you mean \"step\"",
                 {.map = "stepp=iter", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "unknown unit",
                 {.map = "step=iter:parsec", .set = "", .step_check = {}});
  for (const auto& [map, said] :
       {std::pair("step=iter,loss=loss:ms", "\"ms\" is no unit of loss; it takes none"),
        std::pair("loss=loss:TFLOPS", "\"TFLOPS\" is no unit of loss; it takes none"),
        std::pair("seconds=loss:GB", "\"GB\" is no unit of seconds; it takes s ms us ns min h"),
        std::pair("tokens_total=loss:B", "\"B\" is no unit of tokens_total; it takes k M G T P")})
    expect_refused(csv, ExitCode::usage, said, {.map = map, .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "NAME=VALUE", {.map = "step", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "step is given twice, as \"iter\" and \"loss\"",
                 {.map = "step=iter,step=loss", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "none of its columns",
                 {.map = "step=nothing", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "no column \"itr\"; its first line names \"iter, loss\"",
                 {.map = "step=itr,loss=loss", .set = "", .step_check = {}});
  expect_refused("{\"iter\": 1, \"loss\": 2.5}\n", ExitCode::usage,
                 "no column \"itr\"; no line holds a number",
                 {.map = "step=itr,loss=loss", .set = "", .step_check = {}});
  // Each line need not hold every column; one with a step's number alone says nothing of it.
  EXPECT_EQ(read_one("{\"iter\": 1}\n{\"loss\": 2.5}\n",
                     {.map = "step=iter,loss=loss", .set = "", .step_check = {}})
                .steps_seen,
            1);
  expect_refused(two_steps, ExitCode::usage, "did you mean \"gpus\"",
                 {.map = "", .set = "gpuss=8", .step_check = {}});
  for (const auto& [set, said] :
       {std::pair("gpus=8.5", "must be an integer"), std::pair("gpus=1e30", "must be an integer below 2^62"),
        std::pair("layers=1e-3", "must be an integer"),
        std::pair("max_steps=0.5k,warmup_steps=0.5", "integer"),
        std::pair("gpu=Foo", "GPU \"Foo\" is not known"), std::pair("gpu=A100", "may be any of"),
        std::pair("model=Foo", "no model and no file is called \"Foo\""),
        std::pair("dtype=int4", "no dtype that a data sheet has a peak of"),
        std::pair("dtype=foo", "known are fp64, "), std::pair("dtype=bf61", "did you mean \"bf16\""),
        std::pair("schedule=bar", "no schedule that is judged; known are constant, linear, cosine, "),
        std::pair("schedule=cosin", "did you mean \"cosine\""),
        std::pair("device=tpu", "neither cpu nor cuda")})
    expect_refused(two_steps, ExitCode::usage, said, {.map = "", .set = set, .step_check = {}});
  for (const char* set : {"gpus=8", "gpus=1e3", "tokens_per_step=4.19M", "max_steps=0.5k", "parameters=1.24G",
                          "gpu=NVIDIA H200", "model=llama3-8b", "device=cpu", "dtype=bfloat16",
                          "dtype=fp8_hybrid", "dtype=16-mixed", "schedule=WSD", "schedule=cosine_with_min_lr",
                          "schedule=inverse-square-root", "learning_rate=6e-4"}) {
    std::istringstream in(two_steps);
    EXPECT_NO_THROW(read_logs(in, "x", {.map = "", .set = set, .step_check = {}})) << set;
  }
  expect_refused(two_steps, ExitCode::usage, "micro is given twice, as \"1\" and \"2\"",
                 {.map = "", .set = "micro=1,gpus=8,micro=2", .step_check = {}});
  expect_refused(two_steps, ExitCode::usage, "is no number",
                 {.map = "", .set = "gpus=many", .step_check = {}});
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

TEST(HostileLogsSpec, PathsThatHoldNoLog) {
  const tests::Scratch scratch;
  const auto code_of = [](const std::string& path) {
    try {
      read_logs(path);
    } catch (const UserError& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  };
  EXPECT_EQ(code_of((scratch.path() / "missing.log").string()), 2);
  EXPECT_EQ(code_of(scratch.path().string()), 2);
  EXPECT_EQ(code_of(scratch.write("empty.log", "").string()), 65);
  EXPECT_EQ(code_of(scratch.write("good.log", two_steps).string()), 0);
  scratch.write("run.jsonl", tests::render(tests::simulate(LogFormat::assay, 1)));
  EXPECT_EQ(code_of(scratch.path().string()), 0) << "a run's folder is its run.jsonl";
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
  EXPECT_EQ(read_one(megatron + "21123.0\n").steps.at(0)[Field::memory_peak]->value, 21123.0 * 0x1p20);
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

TEST(HostileLogsSpec, RanksAreToldApart) {
  std::string log;
  for (int step = 1; step <= 3; ++step)
    for (int rank = 0; rank < 4; ++rank)
      log += "[rank" + std::to_string(rank) + "]:[titan] step:  " + std::to_string(step) +
             "  loss:  6.4567  grad_norm:  1.2345  memory: 33.10GiB(41.80%)  tps: 7,012  tflops: 406.07  "
             "mfu: 41.06%\n";
  const std::vector<RunRecord> runs = read_all(log);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].steps.size(), 12u);
  EXPECT_EQ(runs[0].steps[5][Field::rank]->value, 1);
}

TEST(HostileLogsSpec, ASecondRunInTheFileIsASecondRecord) {
  tests::SimulatedRun one = tests::simulate(LogFormat::llmc, 1), two = tests::simulate(LogFormat::llmc, 2);
  const std::vector<RunRecord> runs = read_all(tests::render(one) + tests::render(two));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, static_cast<std::int64_t>(one.steps.size()));
  EXPECT_EQ(runs[1].steps_seen, static_cast<std::int64_t>(two.steps.size()));
  EXPECT_EQ(runs[1].origin, "log (run 2 of 2)");
  EXPECT_THROW(read_one(tests::render(one) + tests::render(two)), UserError);
}

TEST(HostileLogsSpec, ARestartIsSeenAsARestart) {
  const tests::SimulatedRun run = tests::simulate(LogFormat::torchtitan, 4);
  const tests::Report whole = tests::report(run);
  tests::Report first = whole, second = whole;
  const auto half = static_cast<std::ptrdiff_t>(whole.steps.size() / 2);
  ASSERT_GE(half, 2);
  first.steps.resize(static_cast<std::size_t>(half));
  second.steps.erase(second.steps.begin(), second.steps.begin() + half - 1);  // one step done again
  std::string again = tests::render(run, second);
  const double done = *second.steps[0][Field::step] - 1;
  again.replace(again.find("Training starts at step 1"), 25,
                "Training starts at step " + std::to_string(static_cast<int>(done) + 1));
  const RunRecord record = read_one(tests::render(run, first) + again);
  EXPECT_EQ(record.steps_seen, static_cast<std::int64_t>(whole.steps.size() + 1));
  ASSERT_EQ(record.restarts.size(), 1u);
  EXPECT_EQ(record.restarts[0].step.value_or(-1), static_cast<std::int64_t>(done));
}

TEST(HostileLogsSpec, LongLogsAreThinnedByTheStatedRule) {
  std::string log;
  const std::int64_t count = 5 * static_cast<std::int64_t>(RunRecord::kept_steps);
  for (std::int64_t i = 0; i < count; ++i)
    log += "iter " + std::to_string(i) + ": loss 2.5000, time 100.00ms, mfu 30.00%\n";
  std::int64_t seen = 0;
  ReadOptions options;
  options.step_check = [&](const RunRecord& so_far, const Step& step) {
    EXPECT_EQ(so_far.format.name, "nanogpt");
    ++seen;
    return std::llround(step[Field::step]->value) % 9973 == 5000;
  };
  const RunRecord run = read_one(log, options);
  EXPECT_EQ(seen, count);
  EXPECT_EQ(run.steps_seen, count);
  EXPECT_LE(run.steps.size(), RunRecord::kept_steps + 1000);
  EXPECT_GT(run.steps.size(), RunRecord::kept_steps * 3 / 4 - 10);
  const auto number = [&](std::size_t i) { return std::llround(run.steps[i][Field::step]->value); };
  const std::size_t quarter = RunRecord::kept_steps / 4;
  for (std::size_t i = 0; i < quarter; ++i) ASSERT_EQ(number(i), static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < quarter; ++i)
    ASSERT_EQ(number(run.steps.size() - 1 - i), count - 1 - static_cast<std::int64_t>(i));
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(number(i - 1), number(i));
    }
    kept += number(i) % 9973 == 5000;
  }
  EXPECT_EQ(kept, (count - 5000 + 9972) / 9973) << "every step that contradicts is kept";
}

TEST(HostileLogsSpec, StatedSettingsReplaceThoseOfTheLog) {
  ReadOptions options;
  options.set = "gpus=8, gpu=NVIDIA B200,peak_flops=2.25e15,gpu_memory=192GB,model=gpt2";
  const RunRecord run = read_one(two_steps, options);
  EXPECT_EQ(run[Setting::gpus]->value, 8);
  EXPECT_EQ(run.gpu, "NVIDIA B200");
  EXPECT_DOUBLE_EQ(run[Setting::peak_flops]->value, 2.25e15);
  EXPECT_DOUBLE_EQ(run[Setting::gpu_memory]->value, 192e9);
  EXPECT_EQ(run.model, "gpt2");
}

TEST(HostileLogsSpec, AUnitOfSomethingElseIsRefusedWithTheNearestForm) {
  const std::pair<const char*, const char*> refused[] = {
      {"gpu_memory=141gb", "write it like gpu_memory=141GB"},
      {"gpu_memory=141s", "takes B kB MB GB TB KiB MiB GiB TiB; write it like gpu_memory=141GB"},
      {"gpu_memory=141", "gpu_memory=141GB"},
      {"peak_flops=989", "peak_flops=989TFLOPS"},
      {"sequence_length=2k", "takes no unit; write sequence_length=2000, or sequence_length=2048"},
      {"vocab=32%", "vocab takes no unit; write vocab=32"},
      {"gpus=8GB", "gpus takes no unit; write gpus=8"},
      {"average_seconds=3k", "write it like average_seconds=3s"},
      {"average_mfu=41ms", "write it like average_mfu=41%"},
      {"max_steps=10ms", "write it like max_steps=10k"},
      {"tokens_per_second=7000", "--map tokens_per_second=COLUMN"}};
  for (const auto& [set, said] : refused) {
    ReadOptions options;
    options.set = set;
    try {
      read_one(two_steps, options);
      ADD_FAILURE() << set;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
  }
  ReadOptions options;
  options.set =
      "gpu_memory=141GB,peak_flops=989TFLOPS,total_tokens=82G,total_seconds=3h,average_mfu=41%,max_steps=10k";
  const RunRecord run = read_one(two_steps, options);
  EXPECT_EQ(run[Setting::gpu_memory]->value, 141e9);
  EXPECT_EQ(run[Setting::total_seconds]->value, 10800);
  EXPECT_EQ(run[Setting::max_steps]->value, 10000);
}

TEST(HostileLogsSpec, WhatTheCommandLineStatedIsToldFromTheLogsOwnWords) {
  ReadOptions options;
  options.map = "step=step,loss=loss,seconds=ms:ms";
  options.set = "gpus=8,gpu=NVIDIA B200";
  RunRecord run = read_one("step,loss,ms\n1,2.5,100\n2,2.25,101\n", options);
  ASSERT_TRUE(run.stated_for(Setting::gpus) && run.stated_for("gpu") && run.mapped_for(Field::seconds));
  EXPECT_EQ(run.stated_for(Setting::gpus)->option, "--set gpus=8");
  EXPECT_FALSE(run.stated_for(Setting::gpus)->log_number) << "the log says nothing of it";
  EXPECT_EQ(run.stated_for("gpu")->option, "--set gpu=NVIDIA B200");
  EXPECT_EQ(run.mapped_for(Field::seconds)->option, "--map seconds=ms:ms");
  EXPECT_FALSE(run.stated_for(Setting::micro) || run.mapped_for(Field::mfu));
  // An option that takes the place of the log's number, and another that takes the place of the first.
  run[Setting::micro] = exactly(4, 17);
  run.state(Setting::micro, exactly(8), "--set micro=8");
  run.state(Setting::micro, exactly(16), "--micro 16");
  EXPECT_EQ(run[Setting::micro]->value, 16);
  EXPECT_EQ(run.stated_for(Setting::micro)->option, "--micro 16");
  EXPECT_EQ(run.stated_for(Setting::micro)->log_number, exactly(4, 17));
  EXPECT_TRUE(read_one(two_steps).stated.empty() && read_one(two_steps).mapped.empty());
}

TEST(HostileLogsSpec, TablesWhoseColumnsAreNamedLikeFieldsNeedNoMapping) {
  const RunRecord csv = read_one("step;loss;tokens_per_second\n1;2.5;1000\n2;2.25;1001\n");
  ASSERT_EQ(csv.steps.size(), 2u);
  EXPECT_EQ(csv.steps[1][Field::loss]->value, 2.25);
  const RunRecord json =
      read_one("{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": 2.25, \"note\": \"x\"}\n");
  ASSERT_EQ(json.steps.size(), 2u);
  EXPECT_EQ(json.steps[1][Field::loss]->value, 2.25);
}

}  // namespace
}  // namespace assay::spec::audit::hostile_logs_test
