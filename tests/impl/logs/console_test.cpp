// labels: unit
#include "impl/logs/console.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "impl/machine/disk_call.hpp"
#include "spec/text/quantity.hpp"
#include "tests/support/example_run.hpp"

namespace assay::impl::logs::console_test {
namespace {

using tests::example_end;
using tests::example_start;
using tests::example_step;
using namespace spec::record;

/// What a console writes to its two streams.
struct Screen {
  std::ostringstream data, messages;
  Console console;
  explicit Screen(Terminal terminal = {}, std::int64_t log_every = 1)
      : console(data, messages, terminal, log_every) {}
};

/// Notes whether the process was known to wait for its terminal whenever it wrote.
class Watched final : public std::streambuf {
 public:
  int lines = 0, unknown = 0;

 private:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    ++lines, unknown += outside_under_way() != Outside::terminal;
    return count;
  }
  int overflow(int c) override {
    ++lines, unknown += outside_under_way() != Outside::terminal;
    return c;
  }
};

TEST(ConsoleImpl, WhateverIsWrittenIsKnownAsAWaitForTheTerminal) {
  Watched buffer;
  std::ostream both(&buffer);
  Console console(both, both, {.messages_is_terminal = true}, 1);
  for (const Event& event : {Event(example_start()), Event(example_step(1)),
                             Event(Warning{.step = 1, .code = "a", .text = "b"}), Event(example_end())}) {
    const int before = buffer.lines;
    console.show(event);
    EXPECT_GT(buffer.lines, before);
  }
  EXPECT_EQ(buffer.unknown, 0);
  EXPECT_EQ(outside_under_way(), Outside::nothing);
}

TEST(ConsoleImpl, BannerExplainsTheRun) {
  Screen screen;
  screen.console.show(example_start());
  EXPECT_EQ(screen.messages.str(),
            "assay 0.1.0: training tiny-llama\n"
            "\n"
            "  model       853,120 parameters, vocabulary of 256 tokens\n"
            "  compute     5,714,688 FLOPs per token, forward and backward (exact count)\n"
            "  batch       32 sequences x 128 tokens = 4,096 tokens per step\n"
            "              made of 8 sequences per micro-batch x 2 micro-batches x 2 ranks on 1 host\n"
            "  run         250 steps, 1,024,000 tokens, 5.85 TFLOP\n"
            "  data        sentences of the built-in grammar\n"
            "              its entropy is 0.7123 nats per token: the floor of any model's expected loss\n"
            "  hardware    Some CPU, 2 cores, 8.00 GiB\n"
            "  first loss  expected 5.5512 +- 0.0123 nats per token\n"
            "  record      runs/tiny-llama/run.jsonl\n"
            "\n");
  EXPECT_EQ(screen.data.str(), "");
}

TEST(ConsoleImpl, BannerSaysWhereDocumentsEnd) {
  const auto shown = [](const std::string& key, const spec::Value& value) {
    RunStart start = example_start();
    start.settings.emplace_back(key, value);
    Screen screen;
    screen.console.show(start);
    return screen.messages.str();
  };
  const std::string within = "\n              attention stays within documents, which end ";
  EXPECT_NE(shown("data.document_ends", std::string("on")).find(within + "where the files say so\n"),
            std::string::npos);
  EXPECT_NE(shown("data.end_of_document", std::int64_t{3}).find(within + "at token 3\n"), std::string::npos);
  EXPECT_EQ(shown("data.document_ends", std::string("off")).find(within), std::string::npos);
  EXPECT_EQ(shown("data.end_of_document", std::int64_t{-1}).find(within), std::string::npos);
}

TEST(ConsoleImpl, BannerSaysWhereNoFirstLossIsExpected) {
  RunStart start = example_start();
  start.expected_first_loss.reset();
  start.batch.sequences = 262'144, start.batch.tokens = 33'554'432;
  Screen screen;
  screen.console.show(start);
  EXPECT_NE(
      screen.messages.str().find("  first loss  not expected: a step of 33,554,432 tokens is too long to "
                                 "read before this is printed\n"),
      std::string::npos)
      << screen.messages.str();
}

TEST(ConsoleImpl, WeightsAreAMessageAndTheBannerSaysWhatTheirFirstLossIsComparedWith) {
  RunStart start = example_start();
  start.expected_first_loss.reset();
  start.vocab = 256;
  start.settings.emplace_back("model.weights", std::string("a/folder"));
  Screen screen;
  screen.console.show(start);
  EXPECT_NE(screen.messages.str().find("that of trained weights: below log V = 5.5452 nats per token"),
            std::string::npos)
      << screen.messages.str();
  Screen later;
  later.console.show(WeightsFrom{
      .path = "a/folder", .content = "00ff", .types = "BF16, F32", .parameters = 1234567, .bytes = 4096});
  EXPECT_EQ(later.messages.str(),
            "weights from a/folder: 1,234,567 parameters, BF16, F32, 4.00 KiB, content 00ff\n");
}

TEST(ConsoleImpl, BannerNamesGpusAndOneOfEachInTheSingular) {
  RunStart start = example_start();
  start.gpus = {{.name = "NVIDIA H200", .uuid = "GPU-1", .memory_bytes = 150'000'000'000}};
  start.ranks.resize(1);
  start.batch = {
      .sequences = 1, .micro = 1, .accumulation = 1, .ranks = 1, .sequence_length = 1, .tokens = 1};
  Screen screen({.unicode = true});
  screen.console.show(start);
  const std::string text = screen.messages.str();
  EXPECT_NE(text.find("  batch       1 sequence x 1 token = 1 tokens per step\n"
                      "              made of 1 sequence per micro-batch x 1 micro-batch x 1 rank\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  hardware    1 x NVIDIA H200 (140 GiB), host Some CPU, 2 cores, 8.00 GiB\n"),
            std::string::npos);
  EXPECT_NE(text.find("5.5512 ± 0.0123"), std::string::npos);
}

TEST(ConsoleImpl, StepLinesHaveOneWidth) {
  Step step = example_step(7);
  EXPECT_EQ(step_line(step, 250),
            "step   7/250  loss  5.5453  norm  1.234  lr 1.50e-04     16,384 tok/s  MFU     -");
  step.mfu = 0.4123;
  EXPECT_EQ(step_line(step, 250),
            "step   7/250  loss  5.5453  norm  1.234  lr 1.50e-04     16,384 tok/s  MFU 41.2%");
  step.hfu = 0.5;
  EXPECT_EQ(step_line(step, 250),
            "step   7/250  loss  5.5453  norm  1.234  lr 1.50e-04     16,384 tok/s  MFU 41.2%  HFU 50.0%");
  step.hfu.reset();
  const std::size_t width = step_line(step, 250).size();
  EXPECT_EQ(width, 80u);
  for (double loss : {0.0, 10.834, 99999.0, 1e300, -1.5, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    step.loss = step.gradient_norm = loss;
    step.tokens_per_second = std::fabs(loss) > 1e9 ? HUGE_VAL : 9'999'999;
    EXPECT_EQ(step_line(step, 250).size(), width) << step_line(step, 250);
  }
}

TEST(ConsoleImpl, StepsOfRoutersShowTheirLossesAndLoads) {
  Step step = example_step(7);
  const std::string dense = step_line(step, 250);
  step.balance_loss = 16.25;
  step.router_z_loss = 71.5;
  step.load_balance_worst = 1.876;
  step.load_balance_mean = 1.4;
  step.router_entropy = 4.05;
  const std::string routed = dense + "  balance 16.250  router z 71.500  load  1.88  entropy 4.050";
  EXPECT_EQ(step_line(step, 250), routed);
  step.dropped_choices = 0.125;
  EXPECT_EQ(step_line(step, 250), routed + "  dropped 12.5%");
}

TEST(ConsoleImpl, PlainStreamsGetLinesAndNothingElse) {
  Screen screen;
  screen.console.show(example_start());
  screen.messages.str("");
  screen.console.show(example_step(1));
  screen.console.show(example_step(2));
  EXPECT_EQ(screen.data.str(),
            "step   1/250  loss  5.5453  norm  1.234  lr 1.50e-04     16,384 tok/s  MFU     -\n"
            "step   2/250  loss  5.5453  norm  1.234  lr 1.50e-04     16,384 tok/s  MFU     -\n");
  EXPECT_EQ(screen.messages.str(), "");
}

TEST(ConsoleImpl, LogEveryShowsTheFirstTheLastAndEveryNthStep) {
  Screen screen({}, 100);
  screen.console.show(example_start());
  for (int step = 1; step <= 250; ++step) screen.console.show(example_step(step));
  std::string shown;
  std::istringstream lines(screen.data.str());
  for (std::string line; std::getline(lines, line);) shown += line.substr(5, 3) + ";";
  EXPECT_EQ(shown, "  1;100;200;250;");
}

TEST(ConsoleImpl, LinesOfALogCarryElapsedTimeAndEta) {
  Step step = example_step(50);
  step.elapsed_seconds = 130;
  const auto printed = [&](Terminal terminal) {
    Screen screen(terminal);
    screen.console.show(example_start());
    screen.console.show(step);
    return screen.data.str();
  };
  const std::string line = step_line(step, 250);
  EXPECT_EQ(printed({}),
            line + "  elapsed " + spec::duration(130) + "  ETA " + spec::duration(200 * 0.25) + "\n");
  EXPECT_EQ(printed({.data_is_terminal = true}), printed({})) << "as mpirun gives ranks";
  EXPECT_EQ(printed({.data_is_terminal = true, .messages_is_terminal = true, .width = 80}), line + "\n")
      << "there the bar says it";
  step.step = 250;
  EXPECT_EQ(printed({}), step_line(step, 250) + "  elapsed " + spec::duration(130) + "\n");
}

TEST(ConsoleImpl, TheBarShowsShareAndEtaAndIsErasedBeforeTheNextLine) {
  Screen screen({.messages_is_terminal = true, .width = 40});
  screen.console.show(example_start());
  screen.messages.str("");
  screen.console.show(example_step(125));  // half; 125 steps of 0.25 s are left
  EXPECT_EQ(screen.messages.str(), "==========-----------  50 %  ETA 31.2 s");
  screen.messages.str("");
  screen.console.show(example_step(250));
  EXPECT_EQ(screen.messages.str(), "\r\x1b[K");  // complete: no bar is drawn again
}

TEST(ConsoleImpl, TheBarNamesTheLastCheckpoint) {
  Screen screen({.messages_is_terminal = true, .width = 80});
  screen.console.show(example_start());
  Checkpoint saved;
  saved.step = 100;
  screen.console.show(saved);
  screen.messages.str("");
  screen.console.show(example_step(125));
  EXPECT_TRUE(screen.messages.str().ends_with("  50 %  ETA 31.2 s  saved 100")) << screen.messages.str();
}

TEST(ConsoleImpl, TheBarFitsANarrowTerminal) {
  for (int width : {1, 10, 20, 200}) {
    Screen screen({.messages_is_terminal = true, .unicode = false, .width = width});
    screen.console.show(example_start());
    screen.messages.str("");
    screen.console.show(example_step(100));
    const std::string text = screen.messages.str();
    EXPECT_TRUE(static_cast<int>(text.size()) < width || text.find('=') == std::string::npos) << text;
  }
}

TEST(ConsoleImpl, ColoursAreWrittenToTerminalsOnly) {
  Screen plain({.colour = true});
  plain.console.show(example_start());
  plain.console.show(example_step(1));
  plain.console.show(Warning{.step = 1, .code = "c", .text = "t"});
  EXPECT_EQ((plain.data.str() + plain.messages.str()).find('\x1b'), std::string::npos);
  Screen screen({.data_is_terminal = true, .messages_is_terminal = false, .colour = true});
  screen.console.show(example_start());
  screen.console.show(example_step(1));
  EXPECT_NE(screen.data.str().find("loss \x1b[1m 5.5453\x1b[0m  norm"), std::string::npos);
  Screen no_colour({.data_is_terminal = true, .messages_is_terminal = true, .colour = false});
  no_colour.console.show(example_start());
  no_colour.console.show(example_step(1));
  EXPECT_EQ(no_colour.data.str().find('\x1b'), std::string::npos);
}

TEST(ConsoleImpl, WarningsCheckpointsAndResumesAreMessages) {
  Screen screen;
  screen.console.show(example_start());
  screen.messages.str("");
  screen.console.show(Warning{.step = 1, .code = "first_loss", .text = "first loss 9.0 is 280 sd off"});
  screen.console.show(Checkpoint{.step = 250,
                                 .path = "runs/x/step-250",
                                 .bytes = 10'250'000,
                                 .seconds = 0.031,
                                 .asynchronous = false,
                                 .copy_seconds = 0,
                                 .write_seconds = 0.031,
                                 .delay_seconds = 0.031,
                                 .host_bytes = 0});
  screen.console.show(Checkpoint{.step = 260,
                                 .path = "runs/x/step-260",
                                 .bytes = 10'250'000,
                                 .seconds = 2,
                                 .asynchronous = true,
                                 .copy_seconds = 0.1,
                                 .write_seconds = 1.5,
                                 .delay_seconds = 0.12,
                                 .host_bytes = 10'250'000});
  screen.console.show(ResumeFrom{.step = 250, .path = "runs/x/step-250"});
  EXPECT_EQ(
      screen.messages.str(),
      "warning at step 1: first loss 9.0 is 280 sd off [first_loss]\n"
      "checkpoint of step 250: runs/x/step-250, 9.78 MiB in 0.03 s\n"
      "checkpoint of step 260: runs/x/step-260, 9.78 MiB in 2.00 s beside the steps, which waited 0.12 s\n"
      "resuming after step 250 from runs/x/step-250\n");
  EXPECT_EQ(screen.data.str(), "");
}

TEST(ConsoleImpl, TheBannerTellsThePlannedMemoryAndAMessageWhatWasMeasured) {
  Screen screen;
  RunStart start = example_start();
  start.planned_memory_bytes = std::int64_t{3} << 29;
  screen.console.show(start);
  EXPECT_NE(
      screen.messages.str().find("  memory      1.50 GiB at the fullest moment of a step, on each rank\n"),
      std::string::npos)
      << screen.messages.str();
  screen.messages.str("");
  start.batch.ranks = 1, start.tensor_ranks = 2;
  screen.console.show(start);
  for (const char* text :
       {" of a step, on each rank\n", " x 1 data-parallel rank of 2 tensor ranks on 1 host\n"})
    EXPECT_NE(screen.messages.str().find(text), std::string::npos) << screen.messages.str();
  screen.messages.str("");
  Memory memory;
  memory.step = 1, memory.device = "cuda:0", memory.planned_bytes = std::int64_t{3} << 29;
  screen.console.show(memory);
  EXPECT_EQ(screen.messages.str(), "");
  memory.measured_bytes = std::int64_t{3} << 28;
  screen.console.show(memory);
  EXPECT_EQ(screen.messages.str(), "memory of cuda:0 at step 1: planned 1.50 GiB, measured 768 MiB\n");
}

/// With several expert ranks the plan is of a load, which is stated.
TEST(ConsoleImpl, ThePlannedMemoryIsOfALoad) {
  Screen screen;
  RunStart start = example_start();
  start.planned_memory_bytes = std::int64_t{3} << 29;
  start.expert_ranks = 2, start.planned_load = 1.43, start.most_load = 2;
  screen.console.show(start);
  EXPECT_NE(
      screen.messages.str().find("fullest moment of a step, on each rank, with up to 1.43 times the mean "
                                 "rows of experts (routing can bring 2.00)\n"),
      std::string::npos)
      << screen.messages.str();
  screen.messages.str("");
  start.planned_load = 2;
  screen.console.show(start);
  EXPECT_NE(screen.messages.str().find("of a step, on each rank, whatever the routing\n"), std::string::npos)
      << screen.messages.str();
  screen.messages.str("");
  Memory memory;
  memory.step = 1, memory.device = "cuda:0", memory.planned_bytes = 3 << 20, memory.measured_bytes = 2 << 20,
  memory.load = 1.21;
  screen.console.show(memory);
  EXPECT_EQ(screen.messages.str(),
            "memory of cuda:0 at step 1: planned 3.00 MiB at most, measured 2.00 MiB with up to 1.21 times "
            "the mean "
            "rows of experts\n");
}

TEST(ConsoleImpl, TheBannerTellsWhatComputesAttentionAndWhetherTheRunRepeats) {
  for (const bool repeats : {true, false}) {
    Screen screen;
    RunStart start = example_start();
    start.attention = "cudnn", start.deterministic = repeats;
    screen.console.show(start);
    EXPECT_NE(screen.messages.str().find(
                  repeats ? "  attention   cudnn; the run gives the same bits when it is repeated\n"
                          : "  attention   cudnn; the run's last bits are its own\n"),
              std::string::npos)
        << screen.messages.str();
  }
}

TEST(ConsoleImpl, SamplesShowTheGrammarsVerdict) {
  Samples samples;
  samples.samples = {{.text = "two plus three is five.", .accepted = true, .sum_right = true},
                     {.text = "the cat \x1b[2J sees", .accepted = false, .sum_right = {}},
                     {.text = "one plus one is three.", .accepted = true, .sum_right = false}};
  samples.judged = 3;
  samples.accepted = 2;
  samples.sums = 2;
  samples.sums_right = 1;
  Screen screen;
  screen.console.show(samples);
  EXPECT_EQ(screen.data.str(),
            "\n"
            "  sampled text             grammar  sum\n"
            "  two plus three is five.  yes      right\n"
            "  the cat  [2J sees        no\n"
            "  one plus one is three.   yes      wrong\n"
            "\n"
            "  sentences   2 of 3 (67 %) accepted by the grammar\n"
            "  sums        1 of 2 (50 %) right\n");
}

TEST(ConsoleImpl, LongSamplesAreCutToTheirColumn) {
  Samples samples;
  samples.samples = {{.text = std::string(200, 'a'), .accepted = false, .sum_right = {}},
                     {.text = std::string(64, 'b'), .accepted = true, .sum_right = {}}};
  Screen screen;
  screen.console.show(samples);
  EXPECT_NE(screen.data.str().find("\n  " + std::string(61, 'a') + "...  no\n  " + std::string(64, 'b') +
                                   "  yes\n"),
            std::string::npos)
      << screen.data.str();
}

Validation example_validation() {
  Validation validation;
  validation.step = 50, validation.loss = 3.14159, validation.perplexity = 23.1406;
  validation.sequences = 16, validation.valid_tokens = 2048, validation.seconds = 0.5;
  return validation;
}

TEST(ConsoleImpl, AValidationIsALineOfItsOwn) {
  Validation validation = example_validation();
  EXPECT_EQ(validation_line(validation, 250),
            "validation  50/250  loss  3.1416  perplexity   23.141  in 0.50 s");
  validation.bits_per_byte = 4.53236, validation.lowest = true;
  EXPECT_EQ(
      validation_line(validation, 250),
      "validation  50/250  loss  3.1416  perplexity   23.141  bits/byte  4.5324  in 0.50 s, the lowest so "
      "far");
  validation.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(validation_line(validation, 250).find("loss     nan"), std::string::npos);
  Screen screen;
  screen.console.show(example_start());
  screen.console.show(example_validation());
  EXPECT_EQ(screen.data.str(), validation_line(example_validation(), 250) + "\n");
}

TEST(ConsoleImpl, BannerAndSummaryHaveTheValidation) {
  RunStart start = example_start();
  start.validation = "16 of 99 held-out samples of 128";
  Screen screen;
  screen.console.show(start);
  EXPECT_NE(screen.messages.str().find("\n  validation  16 of 99 held-out samples of 128\n"),
            std::string::npos)
      << screen.messages.str();
  screen.console.show(example_validation());
  screen.console.show(example_end());
  EXPECT_NE(screen.data.str().find("\n  validation  3.1416 nats per token after step 50\n"),
            std::string::npos)
      << screen.data.str();
}

TEST(ConsoleImpl, SummaryStandsBesideTheFloor) {
  Screen screen;
  screen.console.show(example_start());
  screen.console.show(example_end());
  EXPECT_EQ(screen.data.str(),
            "\n"
            "done: 250 steps, 1,024,000 tokens in 62.1 s, 16,479 tokens/s\n"
            "\n"
            "  loss        0.7421 nats per token, mean of the last 12 steps\n"
            "  floor       0.7123 nats per token, the entropy of the data\n"
            "  gap closed  99.4 % of the way from log V = 5.5452 to the floor\n"
            "  report      runs/tiny-llama/report.html\n");
}

TEST(ConsoleImpl, ARunThatFailedHasNoReportAndALossAboveLogVNoGap) {
  Screen screen;
  RunEnd end = example_end();
  end.reason = EndReason::error;
  end.gap_closed = -0.43;
  screen.console.show(example_start());
  screen.console.show(end);
  EXPECT_EQ(screen.data.str().find("report.html"), std::string::npos);
  EXPECT_EQ(screen.data.str().find("gap closed"), std::string::npos);
}

TEST(ConsoleImpl, TheEndSaysWhereAllTimeWent) {
  Screen screen;
  RunEnd end = example_end();
  end.goodput = {
      .tokens_per_second = 12'800, .seconds = 80, .start_up = 8, .steps = 64, .data_wait = 2, .saves = 6};
  screen.console.show(example_start());
  screen.console.show(end);
  EXPECT_NE(screen.data.str().find("  goodput     12,800 tokens/s over 80.0 s since the trainer began: steps "
                                   "80.0 %, data wait 2.5 %, saves 7.5 %, start-up 10.0 %\n"),
            std::string::npos)
      << screen.data.str();
}

TEST(ConsoleImpl, TheEndOfAResumedRunSaysWhichStepsItSums) {
  Screen screen;
  RunEnd end;
  end.steps = 2, end.tokens = 1024, end.seconds = 1, end.tokens_per_second = 1024;
  end.goodput = {.tokens_per_second = 512, .seconds = 2, .start_up = 1, .steps = 1};
  screen.console.show(example_start());
  screen.console.show(ResumeFrom{.step = 7, .path = "a/step_00000007"});
  screen.console.show(end);
  EXPECT_EQ(
      screen.data.str(),
      "\ndone: 2 steps since the resume after step 7, 1,024 tokens in 1.00 s, 1,024 tokens/s\n\n"
      "  goodput     512 tokens/s over 2.00 s since this start of the trainer: steps 50.0 %, start-up 50.0 "
      "%\n"
      "  report      runs/tiny-llama/report.html\n");
}

TEST(ConsoleImpl, NamesOfTokenFilesArePrintedAsText) {
  Screen screen;
  RunStart start = example_start();
  start.data.files = {"a\nassay: all is well.bin", "b.bin"};
  screen.console.show(start);
  EXPECT_NE(screen.messages.str().find("a\\nassay: all is well.bin, b.bin\n"), std::string::npos)
      << screen.messages.str();
}

TEST(ConsoleImpl, AResumeNamesTheSettingsThatChanged) {
  Screen screen;
  screen.console.show(
      ResumeFrom{.step = 7,
                 .path = "a/step_00000007",
                 .changed = {{{"batch.micro", std::int64_t{8}, std::int64_t{4}},
                              {"memory.recompute", std::string("none"), std::string("block")}}}});
  EXPECT_EQ(screen.messages.str(),
            "resuming after step 7 from a/step_00000007\n"
            "  batch.micro is 4, was 8\n"
            "  memory.recompute is \"block\", was \"none\"\n");
}

TEST(ConsoleImpl, SummaryOfAStoppedRunSaysWhyAndHowToContinue) {
  RunEnd end;
  end.reason = EndReason::saved;
  end.exit_code = 75;
  end.message = "SIGTERM";
  end.steps = 1;
  Screen screen;
  screen.console.show(example_start());
  screen.console.show(end);
  EXPECT_EQ(screen.data.str(),
            "\n"
            "stopped and saved: 1 step, 0 tokens in 0.00 s, 0 tokens/s\n"
            "\n"
            "  reason      SIGTERM\n"
            "  report      runs/tiny-llama/report.html\n"
            "  continue    assay resume runs/tiny-llama\n");
}

TEST(TerminalImpl, NoColorAndDumbTerminalsAreRespected) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(detect_terminal().colour);
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(detect_terminal().colour);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(detect_terminal().colour);
  EXPECT_FALSE(detect_terminal().messages_is_terminal);
  unsetenv("TERM");
  setenv("LC_ALL", "en_GB.UTF-8", 1);
  EXPECT_TRUE(detect_terminal().unicode);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(detect_terminal().unicode);
  unsetenv("LC_ALL");
}

}  // namespace
}  // namespace assay::impl::logs::console_test
