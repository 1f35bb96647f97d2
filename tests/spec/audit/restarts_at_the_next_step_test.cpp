// labels: unit
// A program that saves, ends, and goes on with the next step: its losses go on from the last lines before.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::restarts_at_the_next_step_test {
namespace {

struct Shown {
  int lines = 60, every = 1;  // of each start
  std::function<double(int step, bool again)> loss;
  std::function<double(int step)> rate = [](int) { return 3e-4; };
};

std::string line_of(const Shown& run, int step, bool again) {
  char text[128];
  std::snprintf(text, sizeof text, "{\"step\": %d, \"loss\": %.4f, \"lr\": %.3e}\n", step,
                run.loss(step, again), run.rate(step));
  return text;
}

/// JSON lines of two starts, the second of which is recorded as one.
RunRecord restarted(const Shown& run) {
  std::string log;
  for (int i = 1; i <= 2 * run.lines; ++i) log += line_of(run, i * run.every, i > run.lines);
  RunRecord out = tests::read_text(log);
  out.restarts.push_back({run.lines + 1, std::nullopt});
  return out;
}

/// torchtitan's lines, of which it prints the first step of a start and every tenth.
std::string titan(int from, int to, double above) {
  std::string log = "[titan] 2025-09-12 10:00:00,123 - root - INFO - Training starts at step " +
                    std::to_string(from) + "\n";
  for (int step = from; step <= to; ++step) {
    if (step != from && step % 10 != 0) continue;
    char text[256];
    std::snprintf(text, sizeof text,
                  "[titan] 2025-09-12 10:00:10,123 - root - INFO - step: %2d  loss: %7.4f  memory: "
                  "46.02GiB(58.18%%)  tps: 7,040  tflops: 407.69  mfu: 41.22%%\n",
                  step, above + 2.5 + 9.2 * std::exp(-step / 40.0) + 0.01 * (step / 10 % 3));
    log += text;
  }
  return log;
}

double falling(int step) { return 2.5 + 9.2 * std::exp(-step / 30.0); }

TEST(RestartsAtTheNextStepSpec, WeightsThatWereNotRestoredAreTold) {
  for (const double scatter : {0.005, 0.05, 0.2}) {
    std::mt19937 draw(3);
    std::normal_distribution<double> normal(0, scatter);
    const Result told =
        judge("resume", restarted({.loss = [&](int step, bool again) {
                return falling(step) + normal(draw) + (again ? 8 * std::exp(-(step - 60) / 30.0) : 0);
              }}));
    ASSERT_EQ(told.verdict, Verdict::contradicts) << scatter;
    EXPECT_EQ(told.causes.at(0).id, "weights_not_resumed");
    EXPECT_NE(told.note.find("loss from step 61 on"), std::string::npos) << told.note;
  }
}

/// The log of a truthful run whose program printed its header once more before line `at` of the steps.
RunRecord started_again(const tests::SimulatedRun& run, std::size_t at) {
  const std::string log = tests::render(run);
  const tests::Report all = tests::report(run);
  tests::Report behind = all;
  behind.steps.erase(behind.steps.begin(), behind.steps.begin() + static_cast<std::ptrdiff_t>(at));
  tests::Report before = all;
  before.steps.resize(at);
  return tests::read_text(tests::render(run, before) + tests::render(run, behind));
}

TEST(RestartsAtTheNextStepSpec, TruthfulRunsThatGoOnAreConsistent) {
  int judged = 0;
  for (const tests::LogFormat format : {tests::LogFormat::megatron, tests::LogFormat::torchtitan,
                                        tests::LogFormat::llmc, tests::LogFormat::llm_tii})
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const tests::SimulatedRun run = tests::simulate(format, seed);
      const std::size_t lines = tests::report(run).steps.size();
      if (lines < 12) continue;
      const Result told = judge("resume", started_again(run, 6 + seed % (lines - 9)));
      ASSERT_NE(told.verdict, Verdict::contradicts) << to_string(format) << " " << seed << ": " << told.note;
      judged += told.verdict == Verdict::holds;
    }
  EXPECT_GT(judged, 100);
}

TEST(RestartsAtTheNextStepSpec, AFewLinesOfASteepBeginningDoNotHideThem) {
  EXPECT_EQ(judge("resume", tests::read_text(titan(1, 60, 0) + titan(61, 120, 4))).verdict,
            Verdict::contradicts);
  const RunRecord honest = tests::read_text(titan(1, 60, 0) + titan(61, 120, 0));
  EXPECT_EQ(judge("resume", honest).verdict, Verdict::holds) << contradictions(honest);
}

TEST(RestartsAtTheNextStepSpec, ChanceIsNotAccused) {
  for (const int lines : {7, 9, 12, 60})
    for (unsigned seed = 0; seed < 400; ++seed) {
      std::mt19937 draw(seed);
      std::normal_distribution<double> normal(0, 0.1);
      const RunRecord steady =
          restarted({.lines = lines, .loss = [&](int, bool) { return 2.2 + normal(draw); }});
      ASSERT_EQ(judge("resume", steady).verdict, Verdict::holds) << lines << " " << seed;
      // Rising all the time is no news of the restart.
      const RunRecord rising = restarted(
          {.lines = lines, .loss = [&](int step, bool) { return 2.2 + 0.03 * step + normal(draw) / 20; }});
      ASSERT_NE(judge("resume", rising).verdict, Verdict::contradicts) << lines << " " << seed;
    }
}

TEST(RestartsAtTheNextStepSpec, ALossThatRoseAsFarBeforeIsNotAccused) {
  // Data of several kinds, one after the other: lines lie near their neighbours.
  const auto hard = [](int step) { return step / 10 % 3 == 0; };
  const auto loss = [&](int step, bool) { return 2.2 + 0.01 * (step % 3) + (hard(step) ? 0.4 : 0); };
  EXPECT_EQ(judge("resume", restarted({.lines = 59, .loss = loss})).verdict, Verdict::holds);
}

/// Three starts, of sixty steps each unless said, of losses that scatter by hundredths; `rises` above that.
Result three_starts(const std::function<double(int step)>& rises, int second = 61, int third = 121) {
  std::string log;
  for (int step = 1; step <= 180; ++step) {
    char text[96];
    std::snprintf(text, sizeof text, "{\"step\": %d, \"loss\": %.4f}\n", step,
                  2.6 + 8 * std::exp(-step / 9.0) + 0.01 * (step % 3) + rises(step));
    log += text;
  }
  RunRecord run = tests::read_text(log);
  run.restarts = {{second, std::nullopt}, {third, std::nullopt}};
  return judge("resume", run);
}

/// Three times what lines rose before is forgiven, of the last hundred.
TEST(RestartsAtTheNextStepSpec, EarlierRisesForgiveThreefold) {
  const auto both = [](double earlier, int from, int to, double later) {
    return [=](int step) { return step > from && step <= to ? earlier : step > 120 ? later : 0.0; };
  };
  EXPECT_EQ(three_starts(both(0, 0, 0, 3.5)).verdict, Verdict::contradicts);
  EXPECT_EQ(three_starts(both(1.3, 100, 108, 3.5)).verdict, Verdict::holds) << "a third of it and more";
  EXPECT_EQ(three_starts(both(1.0, 100, 108, 3.5)).verdict, Verdict::contradicts) << "less";
  EXPECT_EQ(three_starts(both(3.0, 14, 19, 3.5)).verdict, Verdict::contradicts) << "long ago";
}

/// The lines behind a restart are its own: not those of the next one.
TEST(RestartsAtTheNextStepSpec, EachRestartIsHeldByItself) {
  const Result second = three_starts([](int step) { return step > 120 ? 3.5 : 0.0; });
  ASSERT_EQ(second.verdict, Verdict::contradicts);
  EXPECT_EQ(second.contradicted, 1);
  EXPECT_NE(second.note.find("step 121"), std::string::npos) << second.note;
  const Result first = three_starts([](int step) { return step > 60 && step <= 120 ? 3.5 : 0.0; });
  ASSERT_EQ(first.verdict, Verdict::contradicts);
  EXPECT_NE(first.note.find("step 61"), std::string::npos) << first.note;
  // Behind one that soon ends there are too few.
  const Result soon = three_starts([](int step) { return step >= 63 ? 3.5 : 0.0; }, 61, 63);
  EXPECT_EQ(soon.contradicted, 1);
  EXPECT_NE(soon.note.find("step 63"), std::string::npos) << soon.note;
}

/// Annealing, mid-training and curricula start a program again at the next step, on other data or with a
/// warm-up: the loss rises by tenths, and is told. Lost weights are those of a run's beginning.
TEST(RestartsAtTheNextStepSpec, OtherDataAreToldAndNotAccused) {
  const auto course = [](double above) {
    return [=](int step, bool again) {
      return 2.6 + 8 * std::exp(-step / 9.0) + 0.01 * (step % 3) + (again ? above : 0);
    };
  };
  for (const double above : {0.25, 0.7, 1.5}) {
    const Result told = judge("resume", restarted({.loss = course(above)}));
    EXPECT_EQ(told.verdict, Verdict::holds) << above;
    EXPECT_NE(told.note.find("higher behind the restart at line 61"), std::string::npos) << told.note;
  }
  EXPECT_EQ(judge("resume", restarted({.loss = course(3.5)})).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("resume", restarted({.loss = course(0)})).note, "");
  // A run that is fine-tuned from the beginning has nowhere to fall back to.
  const auto tuned = [](int step, bool again) { return 2.2 + 0.01 * (step % 3) + (again ? 0.4 : 0); };
  EXPECT_EQ(judge("resume", restarted({.lines = 59, .loss = tuned})).verdict, Verdict::holds);
}

/// Losses that follow one another: their neighbours lie nearer than lines some way off.
TEST(RestartsAtTheNextStepSpec, LossesThatWanderAreNotAccused) {
  for (const double rho : {0.5, 0.9, 0.97})
    for (const int lines : {7, 12, 20})
      for (unsigned seed = 0; seed < 150; ++seed) {
        std::mt19937 draw(seed);
        std::normal_distribution<double> normal(0, 0.1);
        double wander = 0;
        const RunRecord run = restarted({.lines = lines, .loss = [&](int step, bool) {
                                           wander = rho * wander + normal(draw);
                                           return 2.6 + 8 * std::exp(-step / 2.0) + wander;
                                         }});
        ASSERT_NE(judge("resume", run).verdict, Verdict::contradicts) << rho << " " << lines << " " << seed;
      }
}

TEST(RestartsAtTheNextStepSpec, ARateThatWarmsUpAgainIsNotHeld) {
  // A schedule that had fallen and begins anew takes the loss up with it.
  const auto loss = [](int step, bool again) {
    return 2.6 + 8 * std::exp(-step / 9.0) + 0.01 * (step % 3) + (again ? 3.5 : 0.0);
  };
  EXPECT_EQ(judge("resume", restarted({.loss = loss})).verdict, Verdict::contradicts);
  const auto again = [](int step) { return step <= 60 ? 3e-5 : 3e-4; };
  EXPECT_NE(judge("resume", restarted({.loss = loss, .rate = again})).verdict, Verdict::contradicts);
}

/// Steps between the two whose lines are lost may have had any loss.
TEST(RestartsAtTheNextStepSpec, ARestartBehindLostStepsIsNotHeld) {
  RunRecord run = restarted({.loss = [](int step, bool again) {
    return 2.6 + 8 * std::exp(-step / 9.0) + 0.01 * (step % 3) + (again ? 3.5 : 0.0);
  }});
  ASSERT_EQ(judge("resume", run).verdict, Verdict::contradicts);
  for (std::size_t i = 60; i < run.steps.size(); ++i) run.steps[i][Field::step]->value += 19800;
  EXPECT_EQ(judge("resume", run).verdict, Verdict::cannot_be_judged);
}

TEST(RestartsAtTheNextStepSpec, FewLinesAreNotJudged) {
  const auto jump = [](int step, bool again) { return 2.2 + 0.01 * (step % 3) + (again ? 3 : 0); };
  const Result told = judge("resume", restarted({.lines = 4, .loss = jump}));
  EXPECT_EQ(told.verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(told.note, "six losses before the restart and three behind it");
}

}  // namespace
}  // namespace assay::spec::audit::restarts_at_the_next_step_test
