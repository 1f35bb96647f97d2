// labels: unit
// Lines that a terminal, a viewer or a tool cut or wrapped: what is left of their last number is not the
// number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/last_part.hpp"
#include "spec/audit/readers/line_ends.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::cut_lines_test {
namespace {

std::vector<std::string> lines_of(const std::string& log) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = log.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(log.substr(at, end - at));
  return lines;
}

std::string cut(const std::string& log, std::size_t width, const std::string& sign = "") {
  std::string out;
  for (const std::string& line : lines_of(log))
    out += (line.size() > width ? line.substr(0, width) + sign : line) + "\n";
  return out;
}

std::string wrapped(const std::string& log, std::size_t width, const std::string& indent = "") {
  std::string out;
  for (const std::string& line : lines_of(log)) {
    for (std::size_t at = 0; at == 0 || at < line.size(); at += width)
      out += (at > 0 ? indent : "") + line.substr(at, width) + "\n";
  }
  return out;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Whether each number of each step of `part` is the one of that step of `whole`; the first that is not.
std::string wrong_number(const RunRecord& part, const RunRecord& whole) {
  std::map<double, const Step*> by_number;
  for (const Step& step : whole.steps) by_number[step[Field::step]->value] = &step;
  for (const Step& step : part.steps) {
    if (!step[Field::step] || by_number.count(step[Field::step]->value) == 0)
      return "a step of another number";
    const Step& other = *by_number[step[Field::step]->value];
    for (std::size_t i = 0; i < field_count; ++i)
      if (step.fields[i] && !(other.fields[i] && same(step.fields[i]->value, other.fields[i]->value)))
        return "field " + std::to_string(i) + " of line " + std::to_string(step.line);
  }
  return "";
}

/// torchtitan's lines, of which one has another width in its middle.
std::string titan() {
  std::string out =
      "[titan] 2025-07-21 15:57:42,774 - root - INFO - Trainer is initialized with local batch size 1, "
      "global "
      "batch size 8, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)\n";
  for (int i = 1; i <= 12; ++i) {
    char text[300];
    std::snprintf(
        text, sizeof text,
        "[titan] 2025-07-21 15:%02d:52,074 - root - INFO - step: %2d  loss: %.4f  grad_norm:  1.9078  "
        "memory: 75.14GiB(95.00%%)  tps: %s  tflops: 362.5%d  mfu: 36.6%d%%\n",
        i, 10 * i, 12.2 - 0.5 * i, i == 1 ? "881" : "6,261", i % 10, i % 10);
    out += text;
  }
  return out;
}

TEST(CutLinesSpec, ANumberBeforeAnEllipsisIsNotTheNumber) {
  for (const char* sign : {"...", "\xe2\x80\xa6"}) {
    const std::string log = titan();
    const std::size_t width = log.find("tflops: 36") - log.rfind('\n', log.find("tflops: 36")) + 10;
    const RunRecord run = tests::read_text(cut(log, width, sign));
    ASSERT_EQ(run.steps.size(), 12u) << sign;
    for (const Step& step : run.steps) {
      EXPECT_FALSE(step[Field::flops_rate] && step[Field::flops_rate]->value < 362e12) << sign;
      EXPECT_TRUE(step[Field::tokens_per_second]) << sign;
    }
    EXPECT_EQ(run.cut_lines.count, 12) << sign;
    EXPECT_EQ(run.cut_lines.line, 2) << sign;
    EXPECT_EQ(run.cut_lines.joined, 0);
    EXPECT_EQ(contradictions(run), "");
  }
}

TEST(CutLinesSpec, WhatEndsInDotsBehindAWordIsWhole) {
  for (const char* text :
       {"Compiling the model...", "...", "step 10 ...", "loaded in 3 s. ...", "v1.2.", "a..", ""})
    EXPECT_FALSE(ends_in_ellipsis(text)) << text;
  for (const char* text : {"lr 3...", "lr 3.\xe2\x80\xa6", "loss: 10.....", "loss: ...", "lr=\xe2\x80\xa6",
                           "lr -3.2e-...", "75.14Gi..."})
    EXPECT_TRUE(ends_in_ellipsis(text)) << text;
}

TEST(CutLinesSpec, TheLastPartGoesWithItsName) {
  EXPECT_EQ(without_last_part("iter 1 | loss: 2.0 | lr 3"), "iter 1 | loss: 2.0 |");
  EXPECT_EQ(without_last_part("iter 1: loss 2.0, time 28.7"), "iter 1: loss 2.0");
  EXPECT_EQ(without_last_part("step:  1  loss: 12.1  tps: 6,2"), "step:  1  loss: 12.1 ");
  EXPECT_EQ(without_last_part("  hidden_size ...... 40"), "  hidden_size ......");
  EXPECT_EQ(without_last_part("5058"), "");
}

/// Whatever the width, in logs of enough lines to prove one: no number is taken that the whole log does not
/// say, and none contradicts.
TEST(CutLinesSpec, NoNumberOfACutOrWrappedLogIsAnother) {
  using enum tests::LogFormat;
  int read = 0, joined = 0, ends = 0;
  for (const tests::LogFormat format :
       {torchtitan, megatron, nanogpt, llmc, kempnerforge, build_nanogpt, nanotron, llmq}) {
    const std::string log = render(tests::simulate(format, 11));
    const RunRecord whole = tests::read_text(log);
    ASSERT_EQ(contradictions(whole), "");
    for (std::size_t width = 40; width < 340; width += 3)
      for (const std::string& text :
           {cut(log, width), cut(log, width, "..."), wrapped(log, width), wrapped(log, width, "    ")}) {
        if (text == log) continue;
        const std::string what = std::string(tests::to_string(format)) + " at " + std::to_string(width) +
                                 "\n" + text.substr(0, 2000);
        try {
          const RunRecord run = tests::read_text(text);
          EXPECT_EQ(contradictions(run), "") << what;
          EXPECT_EQ(wrong_number(run, whole), "") << what;
          read += !run.steps.empty();
          joined += run.cut_lines.joined > 0;
          ends += run.cut_lines.count > 0;
        } catch (const UserError&) {  // no step is left of it
        }
      }
  }
  EXPECT_GT(read, 800);
  EXPECT_GT(joined, 100);
  EXPECT_GT(ends, 200);
}

/// Three lines that end in "2.5e-", "6.6" and "1.9", all at one column: the first has an end of its exponent
/// left that the others had too.
TEST(CutLinesSpec, LinesThatEndWithinAnExponentAreCut) {
  const RunRecord run = tests::read_text(cut(render(tests::simulate(tests::LogFormat::nanotron, 7)), 232));
  EXPECT_EQ(run.cut_lines.column, 232);
  ASSERT_EQ(run.steps.size(), 3u);
  for (const Step& step : run.steps) EXPECT_FALSE(step[Field::learning_rate]);
  EXPECT_EQ(contradictions(run), "");
}

/// Numbers printed to as many digits behind the point make lines equally long where one grows as another
/// shrinks.
TEST(CutLinesSpec, NumbersThatCrossAPowerOfTenAreWhole) {
  std::string crossing, wide, whole;
  for (int i = 0; i < 40; ++i) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "step %5d | loss: %.6f | lr 3.0000e-05 | norm: 1.5000 | dt: %.2fms | tok/sec: %.2f\n", i,
                  10.9 - 0.05 * i, 819'200.0 / (900 + 10 * i), 9000.0 + 100 * i);
    crossing += line;
    std::snprintf(line, sizeof line,
                  "step %5d | loss: 4.500000 | lr 3.0000e-05 | norm: 1.5000 | dt: %.2fms | tok/sec: %.2f\n",
                  i, 980 + 1.1 * i, 1e8 / (980 + 1.1 * i));
    wide += line;
    std::snprintf(line, sizeof line, "step %5d | lr 3.0000e-05 | dt: 910.22ms | loss: %.6f | tok/sec: %d\n",
                  i, 10.9 - 0.05 * i, 9000 + 55 * i);
    whole += line;
  }
  EXPECT_EQ(line_ends(whole).column, 0u);
  EXPECT_EQ(line_ends(crossing).column, 0u);
  EXPECT_EQ(line_ends(wide).column, 0u);
}

/// Lines of a fixed width with others between them, and rows of a table that end and begin in numbers.
TEST(CutLinesSpec, OtherLinesBetweenAreNoRests) {
  std::string clock, words, rows = "step,loss,vl,dt,tps\n";
  for (int i = 0; i < 30; ++i) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "step %5d | loss: %.6f | norm: 1.5000 | dt: 1000.00ms | tok/sec: 485897.37\n", i,
                  9.5 - 0.1 * i);
    clock += line, words += line;
    if (i % 2 == 0) words += "elapsed 432.6 s\n";
    clock += "00:12:3" + std::to_string(i % 10) + " passed\n";
    std::snprintf(line, sizeof line, "%d,%.4f,,1.0926,59981.6\n", 1000 + i, 9.5 - 0.1 * i);
    rows += line;
    rows += std::to_string(1000 + i) + ",,9.6000,,\n";
  }
  EXPECT_FALSE(line_ends(clock).wrapped);
  EXPECT_FALSE(line_ends(words).wrapped);
  EXPECT_TRUE(line_ends(rows).wrapped) << "what the table is needed for";
  EXPECT_FALSE(line_ends(rows, true).wrapped);
}

/// A line that happens to end at the column, before others that are indented as rests are, has none.
TEST(CutLinesSpec, ALineThatEndsAtTheColumnByItselfHasNoRest) {
  // One option ends at column 43 and has no rest, another is cut within its number.
  const std::string log = render(tests::simulate(tests::LogFormat::nanogpt, 105));
  const RunRecord whole = tests::read_text(log), run = tests::read_text(wrapped(log, 43, "    "));
  EXPECT_EQ(wrong_number(run, whole), "");
  for (const Setting setting : {Setting::warmup_steps, Setting::decay_steps}) {
    ASSERT_TRUE(run[setting]) << to_string(setting);
    EXPECT_EQ(run[setting]->value, whole[setting]->value) << to_string(setting);
  }
  EXPECT_EQ(contradictions(run), "");
}

/// All forms at once: of these cut or wrapped logs none is accused (of 17,200 of more seeds and widths 11
/// were).
TEST(CutLinesSpec, NoLogOfAnyOfTheseWidthsIsAccused) {
  using enum tests::LogFormat;
  int read = 0, accused = 0;
  for (const tests::LogFormat format : {torchtitan, megatron, nanogpt, llmc, kempnerforge, build_nanogpt,
                                        nanotron, llmq, hugging_face_console})
    for (std::uint64_t seed = 100; seed < 106; ++seed) {
      const std::string log = render(tests::simulate(format, seed));
      for (std::size_t width = 36 + seed % 7; width < 300; width += 13)
        for (const std::string& text : {cut(log, width), wrapped(log, width), wrapped(log, width, "    ")}) {
          if (text == log) continue;
          try {
            const RunRecord run = tests::read_text(text);
            ++read;
            accused += !contradictions(run).empty();
          } catch (const UserError&) {  // no step is left of it
          }
        }
    }
  EXPECT_GT(read, 1000);
  EXPECT_EQ(accused, 0);
}

/// The log is read in blocks: an odd character in a line that goes over from one to the next is put in its
/// plain way too, wherever the block ends in it.
TEST(CutLinesSpec, AWrappedLineIsCleanedWhereverItsBlockEnds) {
  constexpr int steps = 1600, width = 100;
  const auto log = [](int odd) {
    std::string out;
    for (int i = 1; i <= steps; ++i) {
      char line[240];
      std::snprintf(line, sizeof line,
                    "[titan] 2025-07-21 15:57:42,774 - root - INFO - step:%s%5d  loss: %.4f  grad_norm:  "
                    "1.9078  memory: "
                    "75.14GiB(95.00%%)  tps: 6,261  tflops: 362.57  mfu: 36.66%%\n",
                    i == odd ? "\xc2\xa0" : " ", i, 12.2 - 0.001 * i);
      out += line;
    }
    return wrapped(out, width);
  };
  // Each line takes as many bytes: the one that the block of 256 KiB ends in, and its neighbours.
  const auto bytes = static_cast<int>(log(0).size() / steps);
  for (int odd = (1 << 18) / bytes - 1; odd <= (1 << 18) / bytes + 2; ++odd)
    EXPECT_EQ(tests::read_text(log(odd)).steps_seen, steps) << odd;
}

/// A block of code in Markdown: indented as a whole, and cut at a column of its own.
TEST(CutLinesSpec, AnIndentedLogIsCutAtItsOwnColumn) {
  std::string log;
  for (const std::string& line :
       lines_of(cut(render(tests::simulate(tests::LogFormat::build_nanogpt, 3)), 90)))
    log += "    " + line + "\n";
  const RunRecord run = tests::read_text(log);
  EXPECT_EQ(run.cut_lines.column, 90);
  EXPECT_EQ(contradictions(run), "");
}

/// A checkpoint's line ends in "60...": it is none of the steps, and excuses no step that is lost behind it.
TEST(CutLinesSpec, AnEllipsisBehindOtherWordsExcusesNoStep) {
  const auto log = [](const std::string& between) {
    std::string out;
    for (int i = 1; i <= 120; ++i) {
      if (i == 61) {
        out += between;
        continue;
      }
      char line[100];
      std::snprintf(line, sizeof line, "iter %d: loss %.4f, time %.2fms, mfu 30.00%%\n", i, 10 - 0.05 * i,
                    240.0 + i % 7);
      out += line;
    }
    return tests::read_text(out);
  };
  EXPECT_EQ(judge("steps", log("saving checkpoint at step 60...\n")).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("steps", log("iter 61: loss 7...\n")).verdict, Verdict::holds);
}

TEST(CutLinesSpec, WrappedLinesAreReadAsTheyWere) {
  const std::string log = titan();
  const RunRecord whole = tests::read_text(log);
  const std::size_t at = log.find("6,261"), width = at - log.rfind('\n', at) + 2;  // "6,2", "61"
  const std::string text = wrapped(log, width);
  const RunRecord run = tests::read_text(text);
  ASSERT_EQ(run.steps.size(), whole.steps.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    for (std::size_t f = 0; f < field_count; ++f) {
      ASSERT_EQ(run.steps[i].fields[f].has_value(), whole.steps[i].fields[f].has_value());
      if (!run.steps[i].fields[f]) continue;
      EXPECT_EQ(run.steps[i].fields[f]->value, whole.steps[i].fields[f]->value);
    }
  EXPECT_EQ(run[Setting::sequence_length]->value, 8192);
  EXPECT_EQ(run.cut_lines.joined, static_cast<std::int64_t>(lines_of(text).size() - lines_of(log).size()));
  EXPECT_EQ(run.cut_lines.column, static_cast<std::int64_t>(width));
  EXPECT_EQ(run.cut_lines.count, 0);
  EXPECT_EQ(run.unread_lines, 0);
}

/// Equal lines alone prove nothing: a fixed layout has them.
TEST(CutLinesSpec, LinesOfOneLengthAreWhole) {
  std::string log;
  for (int i = 10; i < 60; ++i)
    log += "step    " + std::to_string(i) + " | loss: 9." + std::to_string(100000 + i) +
           " | lr 8.3916e-07 | norm: 1.0293 | dt: 352.92ms | tok/sec: 14855" + std::to_string(i) + ".12\n";
  const RunRecord run = tests::read_text(log);
  ASSERT_EQ(run.steps.size(), 50u);
  for (const Step& step : run.steps) EXPECT_TRUE(step[Field::tokens_per_second]);
  EXPECT_EQ(run.cut_lines.count, 0);
  EXPECT_EQ(line_ends(log).column, 0u);
  // A line before each that has just as many characters, as one of right-aligned columns has.
  std::string aligned;
  for (int i = 1; i < 40; ++i) {
    char text[100];
    std::snprintf(text, sizeof text, "step %4d loss %8.4f tokens %9d\n", i, 9.0 / i, 1024 * i);
    aligned += text;
  }
  EXPECT_EQ(line_ends(aligned).column, 0u);
}

TEST(CutLinesSpec, HonestLogsAreNotTakenForCutOnes) {
  for (std::size_t i = 0; i < tests::log_formats; ++i)
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const std::string log = render(tests::simulate(static_cast<tests::LogFormat>(i), seed));
      EXPECT_EQ(line_ends(log).column, 0u)
          << tests::to_string(static_cast<tests::LogFormat>(i)) << ", seed " << seed << "\n"
          << log;
    }
}

/// Lines of one kind and width behind the names of several hosts are not of several kinds.
TEST(CutLinesSpec, NamesOfHostsMakeNoKinds) {
  std::string log;
  for (int i = 0; i < 30; ++i) {
    char text[200];
    std::snprintf(
        text, sizeof text,
        "node-%c | step %5d | loss: %.6f | lr 6.0000e-04 | norm: 0.4588 | dt: %.2fms | tok/sec: %.2f\n",
        'a' + i % 4, i, 9 - 0.01 * i, 1300 + 0.7 * i, 173e3 + 37 * i);
    log += text;
  }
  EXPECT_EQ(line_ends(log).column, 0u) << log;
  // Of three kinds of lines each has its own last words.
  std::string kinds;
  for (int i = 10; i < 22; ++i)
    kinds += "at step " + std::to_string(i) + " the " +
             (i % 3 == 0   ? "memory"
              : i % 3 == 1 ? "losses"
                           : "tokens") +
             " of all ranks are " + std::to_string(3.1415926 + i).substr(0, 7 + i % 3) + "\n";
  EXPECT_EQ(line_ends(kinds).column, 0u);
  EXPECT_EQ(line_ends(cut(kinds, 41)).column, 41u) << cut(kinds, 41);
}

/// Megatron's line ends in a bar: a number behind the last one is cut, though all lines are.
TEST(CutLinesSpec, MegatronsNumberWithoutABarIsNotTaken) {
  std::string log;
  for (int i = 1; i <= 5; ++i)
    log += " iteration        " + std::to_string(i) +
           "/    1000 | consumed samples:          128 | elapsed time per "
           "iteration (ms): 5114.7 | throughput per GPU (TFLOP/s/GPU): 309.1 | learning rate: " +
           std::to_string(i) + "\n";
  const RunRecord run = tests::read_text(log);
  ASSERT_EQ(run.steps.size(), 5u);
  for (const Step& step : run.steps) {
    EXPECT_FALSE(step[Field::learning_rate]);
    EXPECT_TRUE(step[Field::flops_rate]);
  }
  EXPECT_EQ(run.cut_lines.count, 5);
}

}  // namespace
}  // namespace assay::spec::audit::cut_lines_test
