// labels: unit
// Step lines of Megatron-LM's family as people quote them: broken by a terminal or a page, and in the
// spellings of its descendants.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::megatron_lines_test {
namespace {

RunRecord read(const std::string& text) {
  std::istringstream in(text);
  return read_log(in, "run.log");
}

/// Lines of one run, each whole; the numbers that change are of one width.
std::vector<std::string> lines(const std::string& end = " | TFLOPs: 75.12 |") {
  std::vector<std::string> out;
  for (int i = 1; i <= 6; ++i) {
    char text[900];
    std::snprintf(
        text, sizeof text,
        " iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): 31%d4.5 | "
        "learning rate: 3.000E-04 | global batch size:    64 | lm loss: 4.%d21930E+00 | loss scale: "
        "1.0 | grad norm: 1%d.954 | number of skipped iterations:   0 | number of nan iterations:   "
        "0 | samples per second: %.3f",
        i, 1000, 64 * i, i, 9 - i, i, 64 / (3.1045 + 0.01 * i));
    out.push_back(text + end);
  }
  return out;
}

/// Broken at the last blank before `width`, which goes, or behind `width` bytes, whatever stands there.
std::string broken(const std::string& line, std::size_t width, bool between_words) {
  std::string out, rest = line;
  while (rest.size() > width) {
    std::size_t end = width;
    if (between_words && rest.rfind(' ', width) != std::string::npos && rest.rfind(' ', width) > 0)
      end = rest.rfind(' ', width);
    out += rest.substr(0, end) + "\n";
    rest = rest.substr(end + (between_words && rest[end] == ' ' ? 1 : 0));
  }
  return out + rest + "\n";
}

void expect_same(const RunRecord& one, const RunRecord& other, const std::string& what) {
  ASSERT_EQ(one.steps.size(), other.steps.size()) << what;
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    for (std::size_t f = 0; f < field_count; ++f) {
      const auto &a = one.steps[i].fields[f], &b = other.steps[i].fields[f];
      ASSERT_EQ(a.has_value(), b.has_value()) << what << ", step " << i << ", field " << f;
      EXPECT_EQ(a ? a->value : 0, b ? b->value : 0) << what << ", step " << i << ", field " << f;
    }
  for (std::size_t s = 0; s < setting_count; ++s) {
    const auto &a = one.settings[s], &b = other.settings[s];
    ASSERT_EQ(a.has_value(), b.has_value()) << what << ", setting " << s;
    EXPECT_EQ(a ? a->value : 0, b ? b->value : 0) << what << ", setting " << s;
  }
  EXPECT_EQ(one.unread_lines, 0) << what;
}

/// A batch that ramps up, of lines that are alike and of lines each of which has a word of its own before it.
TEST(MegatronLinesSpec, ABatchThatGrowsIsThatOfEachLine) {
  const std::string stated =
      "------------------------ arguments ------------------------\n"
      "  global_batch_size ............................... 64\n"
      "  train_iters ..................................... 40\n"
      "-------------------- end of arguments ---------------------\n";
  for (const std::string& header : {std::string(), stated})
    for (const int every : {1, 3, 50}) {
      std::string alike = header, unlike = header;
      for (int i = 1, samples = 0; i <= 40; ++i) {
        const int batch = 64 + 16 * (i / every);
        samples += batch;
        char text[300];
        std::snprintf(
            text, sizeof text,
            "iteration %8d/      40 | consumed samples: %12d | elapsed time per iteration (ms): 3104.5 | "
            "global batch size: %5d | lm loss: 4.321930E+00 | number of skipped iterations:   0 |",
            i, samples, batch);
        alike += std::string(" ") + text + "\n";
        unlike += std::string(static_cast<std::size_t>(i), 'x') + "! " + text + "\n";
      }
      const RunRecord run = read(alike);
      expect_same(run, read(unlike), "every " + std::to_string(every));
      ASSERT_EQ(run.steps.size(), 40U);
      for (int i = 1; i <= 40; ++i)
        EXPECT_EQ(run.steps[static_cast<std::size_t>(i - 1)][Field::step_sequences]->value,
                  64 + 16 * (i / every));
      EXPECT_EQ(run[Setting::sequences].has_value(), every == 50) << header;
    }
}

/// What no part of the line names, and a number that cannot be read, are for the long way.
TEST(MegatronLinesSpec, ABatchThatCannotBeReadIsNotThatOfTheLineBefore) {
  const auto line = [](int step, const std::string& batch) {
    return " iteration " + std::to_string(step) +
           "/ 9 | elapsed time per iteration (ms): 3104.5 | global batch size: " + batch +
           " | lm loss: 4.3 |\n";
  };
  const RunRecord run = read(line(1, "64") + line(2, "96") + line(3, "1e999") + line(4, "96.5"));
  ASSERT_EQ(run.steps.size(), 3U);
  EXPECT_EQ(run.steps[1][Field::step_sequences]->value, 96);
  EXPECT_EQ(run.steps[2][Field::step_sequences]->value, 96.5);
  EXPECT_EQ(run.unread_lines, 1);
}

/// From the width on that leaves what the trainer is known by on the first line: "| consumed".
constexpr std::size_t narrowest = 50;

TEST(MegatronLinesSpec, BrokenLinesAreTheWholeOnes) {
  std::string whole;
  for (const std::string& line : lines()) whole += line + "\n";
  const RunRecord expected = read(whole);
  ASSERT_EQ(expected.steps.size(), 6U);
  ASSERT_TRUE(expected.steps[0][Field::sequences_per_second]);
  for (const bool between_words : {true, false})
    for (std::size_t width = narrowest; width < 400; ++width) {
      std::string text;
      for (const std::string& line : lines()) text += broken(line, width, between_words);
      expect_same(read(text), expected,
                  "width " + std::to_string(width) + (between_words ? ", between words" : ", anywhere"));
      if (HasFatalFailure()) return;
    }
}

TEST(MegatronLinesSpec, WhatIsNoPartOfAStepIsNotPutBehindIt) {
  for (const std::string end : {" | TFLOPs: 75.12 |", " | TFLOPs: 75.12"}) {
    std::string whole, apart, late;
    for (const std::string& line : lines(end)) {
      whole += line + "\n";
      apart += line + "\ntime (ms) | forward: 68.08 | backward: 175.50 | optimizer: 9.1\n";
      late += line + "\nsaved\ngrad norm: 99.9 | lm loss: 1.0 |\n";
    }
    expect_same(read(apart), read(whole), "times of phases");
    // They are of some step, and are lost: that is said.
    RunRecord torn = read(late);
    ASSERT_EQ(torn.unread_lines, 6);
    EXPECT_EQ(torn.unread_quotes[0].line, 3);
    torn.unread_lines = 0;
    expect_same(torn, read(whole), "not directly behind it");
  }
}

/// The step line before it is read when it comes, which is none of its own doing.
TEST(MegatronLinesSpec, ALineBehindAStepSpeaksForItself) {
  const std::vector<std::string> all = lines();
  for (const std::size_t width : {80U, 1000U}) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 3) text += "...\n";
      if (i < 2 || i > 2) text += broken(all[i], width, true);
    }
    EXPECT_EQ(read(text).elisions.size(), 1U) << width;
    EXPECT_EQ(judge("steps", read(text)).verdict, Verdict::holds) << width;
  }
}

/// The end of another step's line, whose beginning is lost.
TEST(MegatronLinesSpec, WhatAStepLineHasAlreadyIsAnotherSteps) {
  const std::vector<std::string> all = lines();
  const std::string end = all[5].substr(all[5].find("| consumed"));
  const RunRecord run = read(all[0] + "\n" + end + "\n" + all[1] + "\n");
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(run.steps[0][Field::sequences_total]->value, 64);
  EXPECT_EQ(run.steps[0][Field::loss]->value, 4.821930);
  ASSERT_EQ(run.unread_lines, 1);
  EXPECT_EQ(run.unread_quotes[0].line, 2);
}

/// What is left of a step line that is put behind none: one part of it right behind a step, two anywhere.
TEST(MegatronLinesSpec, TheTornEndOfAStepLineIsSaid) {
  const std::vector<std::string> all = lines();
  const auto unread = [&](const std::string& between) {
    const RunRecord run = read(all[0] + "\n" + between + "\n" + all[1] + "\n");
    EXPECT_EQ(run.steps.size(), 2U) << between;
    return run.unread_lines;
  };
  EXPECT_EQ(unread("E+00 | grad norm: 1.954 | number of"), 1);
  EXPECT_EQ(unread("ped iterations:   0 | lm loss: 4.821930E+00 |"), 1);
  EXPECT_EQ(unread("saved\n | lm loss: 4.821930E+00 | loss scale: 1.0 | grad"), 1);
  EXPECT_EQ(
      unread(
          "saved\nper iteration (ms): 3114.5 | learning rate: 3.000E-04 | global batch size:    64 | lm lo"),
      1);
  // What is printed between steps as well.
  for (const std::string said :
       {"saved\neval | lm loss: 4.8 | PPL: 100.1 |", "time (ms) | forward: 68.08 | backward: 175.50 |",
        " validation loss at iteration 1 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 | ",
        " validation loss at iteration 1 | lm loss: 2.3E+00 | loss: 1.0E+01 | ", "loss: 4.8",
        "| a table | of words |"})
    EXPECT_EQ(unread(said), 0) << said;
  // Another trainer's step is told as such.
  const std::string other =
      "[step 5] loss=4.8 | lr=3.00e-05 | grad_norm=2.920 | tok/s=631,505 | mfu=53.2% | mem=88.3/178GB | "
      "step_time=0.23s";
  EXPECT_EQ(unread("saved\n" + other), 0);
}

TEST(MegatronLinesSpec, ALineThatLostItsTimeIsSaid) {
  const std::vector<std::string> all = lines();
  const RunRecord run = read(
      all[0] + "\n iteration        2/    1000 | consumed samples:          128 | ela\n" + all[2] + "\n");
  EXPECT_EQ(run.steps.size(), 2U);
  ASSERT_EQ(run.unread_lines, 1);
  EXPECT_EQ(run.unread_quotes[0].line, 2);
}

TEST(MegatronLinesSpec, SpellingsOfDescendantsAreRead) {
  const RunRecord ascend = read(
      " iteration  3/50000 | consumed samples: 768 | consumed tokens:  1572864 | elapsed time per iteration "
      "(ms):  33818.0 | gloabl batch size:  256 | lm loss:  1.200820E+01 | samples per second: 7.570 |\n");
  ASSERT_TRUE(ascend[Setting::sequences]);
  EXPECT_EQ(ascend[Setting::sequences]->value, 256);
  EXPECT_EQ(judge("sequences_rate", ascend).verdict, Verdict::holds);
  const RunRecord safe = read(
      "[2024-02-27 15:45:08] iteration 13 / 118 | consumed samples: 37440 | elapsed time per iteration(ms): "
      "17658.3 | global batch size: 2880 | lm loss: 6.233628E-01 |total grad norm: 2.773 | samples per "
      "second: 163.096 |\n");
  ASSERT_EQ(safe.steps.size(), 1U);
  EXPECT_EQ(safe.steps[0][Field::gradient_norm]->value, 2.773);
  EXPECT_NEAR(safe.steps[0][Field::seconds]->value, 17.6583, 1e-9);
}

}  // namespace
}  // namespace assay::spec::audit::megatron_lines_test
