// labels: unit property
// Steps of logs that are too long to be kept whole, and numbers that no step has.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <vector>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::steps_test {
namespace {

using tests::read_text;

RunRecord read_csv(const std::string& text) {
  ReadOptions options;
  options.map = "step=step,loss=loss";
  std::istringstream in(text);
  return read_log(in, "x.csv", options);
}

/// Steps 1 .. `count` by `every`, without those from `cut_from` on that are below `cut_to`.
std::string csv(int count, int every, int cut_from, int cut_to) {
  std::string out = "step,loss\n";
  for (int i = every; i <= count; i += every)
    if (i < cut_from || i >= cut_to) out += std::to_string(i) + ",2.5\n";
  return out;
}

TEST(StepsSpec, WhatIsMissingInALongLogIsFound) {
  for (const int count : {8'000, 9'000, 20'000}) {
    EXPECT_EQ(judge("steps", read_csv(csv(count, 1, 0, 0))).verdict, Verdict::holds) << count;
    const RunRecord cut = read_csv(csv(count, 1, 5'000, 7'000));
    const Result told = judge("steps", cut);
    ASSERT_EQ(told.verdict, Verdict::contradicts) << count;
    EXPECT_EQ(told.note, "steps between 4,999 and 7,000 are missing") << count;
    EXPECT_EQ(told.lines, (std::vector<std::int64_t>{5'001})) << count;
    EXPECT_EQ(audit(cut).results.empty(), false);
  }
}

TEST(StepsSpec, ALongLogOfSeveralRanksOrARestartIsWhole) {
  std::string ranks = "step,rank,loss\n", restarted = "step,loss\n";
  for (int i = 1; i <= 9'000; ++i)
    for (const int rank : {3, 0, 1, 2}) ranks += std::to_string(i) + "," + std::to_string(rank) + ",2.5\n";
  ReadOptions options;
  options.map = "step=step,rank=rank,loss=loss";
  std::istringstream in(ranks);
  EXPECT_EQ(judge("steps", read_log(in, "ranks.csv", options)).verdict, Verdict::holds);
  for (int i = 1; i <= 9'000; ++i) restarted += std::to_string(i) + ",2.5\n";
  for (int i = 8'501; i <= 12'000; ++i) restarted += std::to_string(i) + ",2.5\n";
  EXPECT_EQ(judge("steps", read_csv(restarted)).verdict, Verdict::holds);
}

TEST(StepsSpec, ALogThatIsReversedIsNoRowOfRestarts) {
  const auto of = [](const std::vector<int>& numbers) {
    std::string out = "step,loss\n";
    for (const int number : numbers) out += std::to_string(number) + ",2.5\n";
    return judge("steps", read_csv(out));
  };
  const Result reversed = of({240, 230, 220, 210, 200, 190, 180});
  EXPECT_EQ(reversed.verdict, Verdict::contradicts);
  EXPECT_EQ(reversed.causes.front().id, "steps_out_of_order");
  EXPECT_EQ(reversed.contradicted, 6);
  // One restart, and another before anything else was logged.
  EXPECT_EQ(of({10, 20, 30, 40, 50, 30, 40, 50, 60}).verdict, Verdict::holds);
  EXPECT_EQ(of({10, 20, 30, 40, 50, 40, 20, 30, 40}).verdict, Verdict::holds);
}

/// Steps 1 to `first` one by one, then every `every`th up to `last`.
std::vector<int> thinned(int first, int every, int last) {
  std::vector<int> out;
  for (int i = 1; i <= first; ++i) out.push_back(i);
  for (int i = first + every; i <= last; i += every) out.push_back(i);
  return out;
}

TEST(StepsSpec, AnotherIntervalToTheEndIsNoLossOfLines) {
  const auto of = [](const std::vector<int>& numbers) {
    std::string out = "step,loss\n";
    for (const int number : numbers) out += std::to_string(number) + ",2.5\n";
    return judge("steps", read_csv(out));
  };
  EXPECT_EQ(of(thinned(100, 10, 500)).verdict, Verdict::holds) << of(thinned(100, 10, 500)).note;
  std::vector<int> more = thinned(100, 10, 300);
  for (const int number : {400, 500, 600, 700, 705}) more.push_back(number);
  EXPECT_EQ(of(more).verdict, Verdict::holds) << of(more).note;
  // A restart begins with the first interval again.
  for (int i = 601; i <= 640; ++i) more.push_back(i);
  EXPECT_EQ(of(more).verdict, Verdict::holds) << of(more).note;
  // Lost lines leave a distance that the next ones do not repeat: before, at, and behind the change.
  for (const int lost : {50, 110, 200}) {
    std::vector<int> cut = thinned(100, 10, 500);
    std::erase(cut, lost);
    EXPECT_EQ(of(cut).verdict, Verdict::contradicts) << lost;
  }
  // Of a log that is not kept whole.
  EXPECT_EQ(of(thinned(9'000, 10, 15'000)).verdict, Verdict::holds) << of(thinned(9'000, 10, 15'000)).note;
  std::vector<int> cut = thinned(9'000, 10, 15'000);
  std::erase(cut, 12'000);
  EXPECT_EQ(of(cut).verdict, Verdict::contradicts);
  // As many lines lost in three places.
  cut = thinned(20'000, 1, 20'000);
  std::erase_if(cut, [](int number) { return number % 5'000 < 3 && number < 16'000 && number > 100; });
  EXPECT_EQ(of(cut).contradicted, 3);
}

/// Who quotes some steps of a run has lost none: it takes an interval to tell.
TEST(StepsSpec, AQuotedSelectionHasNoLostLines) {
  const auto of = [](const std::vector<int>& numbers) {
    std::string out = "step,loss\n";
    for (const int number : numbers) out += std::to_string(number) + ",2.5\n";
    return judge("steps", read_csv(out));
  };
  for (const std::vector<int>& quoted : {std::vector<int>{1, 10, 100, 250},
                                         {1, 2, 5, 10, 20, 50, 100, 200, 500},
                                         {100, 200, 500, 1000, 2500},
                                         {1, 10, 100, 1000, 10'000},
                                         {0, 250, 500, 1000, 2000, 4000},
                                         {10, 20, 70, 150, 160, 400}}) {
    const Result told = of(quoted);
    EXPECT_EQ(told.verdict, Verdict::holds) << quoted[1] << " " << told.note;
    EXPECT_EQ(told.note, "the lines have no interval: a selection, of which none is taken for lost");
  }
  // Most lines keep an interval: another one is lost.
  EXPECT_EQ(of({1, 10, 20, 30, 40, 60, 70}).verdict, Verdict::contradicts);
  EXPECT_EQ(of({1, 2, 3, 5, 6, 9, 10}).verdict, Verdict::contradicts);
  EXPECT_EQ(of({1, 10, 20, 30}).note, "");
}

TEST(StepsSpec, AnotherPlanAndBatchAreAnotherRun) {
  const auto line = [](int step, int planned, int batch, int consumed) {
    return " [2025-11-21 12:10:" + std::to_string(10 + step % 40) + "] iteration " + std::to_string(step) +
           "/ " + std::to_string(planned) + " | consumed samples: " + std::to_string(consumed) +
           " | elapsed time per iteration (ms): 2701.3 | learning rate: 1.0E-05 | global batch size: " +
           std::to_string(batch) + " | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 1.300 |\n";
  };
  const auto runs = [&](const std::string& log) {
    std::istringstream in(log);
    return read_logs(in, "log").size();
  };
  EXPECT_EQ(runs(line(12125, 36000, 256, 3104000) + line(126, 5000, 128, 16128)), 2u);
  // Resumed for longer, or with another batch: one run.
  EXPECT_EQ(runs(line(120, 200, 128, 15360) + line(101, 400, 128, 12928)), 1u);
  EXPECT_EQ(runs(line(120, 200, 128, 15360) + line(101, 200, 256, 12928)), 1u);
}

TEST(StepsSpec, StepsThatAreNotKeptAreNotSaidToBeThere) {
  RunRecord record = read_csv(csv(20'000, 1, 0, 0));
  ASSERT_LT(record.steps.size(), 20'000u);
  record.gaps.clear();  // of a program that counted no distances
  EXPECT_EQ(judge("steps", record).verdict, Verdict::cannot_be_judged);
}

RC_GTEST_PROP(StepsSpecProperty, ACutIsFoundInALogOfAnyLength, ()) {
  const int every = *rc::gen::inRange(1, 4), lines = *rc::gen::inRange(40, 12'000),
            from = every * *rc::gen::inRange(4, lines - 20), cut = every * *rc::gen::inRange(1, 9);
  RC_ASSERT(judge("steps", read_csv(csv(every * lines, every, 0, 0))).verdict == Verdict::holds);
  RC_ASSERT(judge("steps", read_csv(csv(every * lines, every, from, from + cut))).verdict ==
            Verdict::contradicts);
}

TEST(StepsSpec, ANumberThatNoStepHasContradicts) {
  const Result told = judge("steps", read_csv("step,loss\n-5,2.5\n0.5,2.4\n1e9,2.3\n"));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 2);
  ASSERT_FALSE(told.causes.empty());
  EXPECT_EQ(told.causes.front().id, "step_no_number");
  EXPECT_EQ(judge("steps", read_csv("step,loss\n1,2.5\n2,2.4\n3,2.3\n1e9,2.2\n")).verdict,
            Verdict::contradicts);
  EXPECT_EQ(judge("steps", read_csv("step,loss\n0,2.5\n1,2.4\n2,2.3\n")).verdict, Verdict::holds);
}

TEST(StepsSpec, AColumnThatIsThereTwiceIsRefused) {
  EXPECT_THROW(read_csv("step,loss,loss\n1,2.5,9.5\n2,2.4,9.4\n"), UserError);
  EXPECT_NO_THROW(read_csv("step,loss,note,note\n1,2.5,1,2\n2,2.4,1,2\n"));
}

/// torchtitan's lines at `steps` of one rank that takes `seconds[k]` for each step since the line before, and
/// prints `factor` times its tokens/s; lines of `lost` steps are left out.
std::string torchtitan(const std::vector<int>& steps, const std::vector<double>& seconds,
                       const std::vector<int>& lost, double factor = 1) {
  std::string log =
      "[titan] 2025-10-16 09:59:00,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
      "[titan] 2025-10-16 09:59:01,000 - root - INFO - Trainer is initialized with local batch size 1, "
      "global "
      "batch size 8, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 20)\n";
  double clock = 0;
  int before = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    clock += seconds[k] * (steps[k] - before);
    before = steps[k];
    if (std::find(lost.begin(), lost.end(), steps[k]) != lost.end()) continue;
    char line[256];
    const int ms = static_cast<int>(std::lround(1000 * clock));
    std::snprintf(
        line, sizeof line,
        "[titan] 2025-10-16 10:%02d:%02d,%03d - root - INFO - step: %2d  loss: %7.4f  grad_norm:  1.2345  "
        "memory: 60.10GiB(75.90%%)  tps: %.0f\n",
        ms / 60000, ms / 1000 % 60, ms % 1000, steps[k], 11 - 0.01 * steps[k], factor * 8192 / seconds[k]);
    log += line;
  }
  return log;
}

TEST(StepsSpec, TheFirstLineBesideEveryTenthIsNoMeasureOfALostOne) {
  const std::vector<int> steps = {1, 10, 20, 30, 40};
  const std::vector<double> even(5, 1.5);
  EXPECT_EQ(judge("steps", tests::read_text(torchtitan(steps, even, {30}))).verdict, Verdict::holds);
  EXPECT_EQ(judge("steps", tests::read_text(
                               torchtitan({1, 10, 20, 30, 40, 50, 60}, std::vector<double>(7, 1.5), {30})))
                .verdict,
            Verdict::contradicts);
}

TEST(StepsSpec, ARateOfTheWindowSinceALostLineSaysNothingOfItsSteps) {
  // The step before the evaluation's is lost: the last line's window is the evaluation alone.
  const std::vector<int> steps = {1, 2, 3, 4};
  const std::vector<double> seconds = {13.4, 1.633, 1.6, 5.017};
  for (const std::vector<int>& lost : {std::vector<int>{}, {1}, {3}}) {
    const RunRecord run = tests::read_text(torchtitan(steps, seconds, lost));
    EXPECT_NE(judge("rate_wall_clock", run).verdict, Verdict::contradicts) << (lost.empty() ? 0 : lost[0]);
  }
  const std::vector<int> more = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> even(8, 1.6);
  for (const std::vector<int>& lost : {std::vector<int>{}, {1}, {7}}) {
    EXPECT_EQ(judge("rate_wall_clock", tests::read_text(torchtitan(more, even, lost))).verdict,
              Verdict::holds);
    EXPECT_EQ(judge("rate_wall_clock", tests::read_text(torchtitan(more, even, lost, 0.5))).verdict,
              Verdict::contradicts);
  }
}

/// Lines of Hugging Face's Trainer at these epochs.
RunRecord at_epochs(const std::vector<const char*>& epochs, const std::string& set) {
  std::string log;
  for (const char* epoch : epochs)
    log += std::string("{'loss': 2.2, 'grad_norm': 1.7, 'learning_rate': 0.0002, 'epoch': ") + epoch + "}\n";
  return read_text(log, set);
}

TEST(StepsSpec, UnnumberedLinesAreNotPlacedWhereTheirEpochsAreNot) {
  // Steps 1, 2, 4, 8 and 12 of 16: by their number alone, every third.
  const RunRecord picked = at_epochs({"0.06", "0.12", "0.25", "0.5", "0.75"}, "max_steps=16");
  ASSERT_EQ(picked.steps.size(), 5u);
  EXPECT_FALSE(picked.steps[0][Field::step]);
  const RunRecord even = at_epochs({"0.19", "0.38", "0.56", "0.75", "0.94"}, "max_steps=16");
  ASSERT_TRUE(even.steps[4][Field::step]);
  EXPECT_EQ(even.steps[4][Field::step]->value, 15);
  // 23 batches of which eight make a step: three steps per epoch, the last of seven.
  const RunRecord uneven =
      at_epochs({"0.35", "0.7", "1.0", "1.35", "1.7", "2.0", "2.35", "2.7", "3.0"}, "max_steps=9");
  ASSERT_TRUE(uneven.steps[8][Field::step]);
  EXPECT_EQ(uneven.steps[8][Field::step]->value, 9);
}

/// Without numbers a line that stands twice is told by a norm that no two steps share.
TEST(StepsSpec, AnUnnumberedLineThatStandsTwiceIsTold) {
  const auto log = [](int twice, const char* digits, bool restart = false) {
    std::string out;
    for (int i = 1; i <= 41; ++i) {
      char line[200], norm[40];
      std::snprintf(norm, sizeof norm, digits, 1.2345678912345 + std::sin(i));
      std::snprintf(line, sizeof line,
                    "{'loss': 2.2, 'grad_norm': %s, 'learning_rate': 0.0002, 'epoch': 0.01}\n", norm);
      out += line;
      if (i == twice) out += line;
    }
    RunRecord run = read_text(out);
    if (restart) run.restarts.push_back({twice + 1, std::nullopt});
    return judge("steps", run);
  };
  const Result told = log(20, "%.15f");
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 1);
  EXPECT_EQ(told.lines, std::vector<std::int64_t>({21}));
  EXPECT_EQ(told.causes.at(0).id, "step_doubled");
  EXPECT_EQ(log(0, "%.15f").verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(log(20, "%.3f").verdict, Verdict::cannot_be_judged) << "two steps may round alike";
  EXPECT_EQ(log(20, "%.15f", true).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::steps_test
