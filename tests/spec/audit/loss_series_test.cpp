// labels: unit
// Losses near nothing, and losses behind a restart: what an honest run prints too is told, and no more.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::loss_series_test {
namespace {

using tests::read_text;

std::string printed(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

/// Forty JSON lines, losses in `format`.
RunRecord json_lines(const char* format, const std::function<double(int)>& loss) {
  std::string log;
  for (int i = 1; i <= 40; ++i)
    log += "{\"step\": " + std::to_string(i) + ", \"loss\": " + printed(format, loss(i)) +
           ", \"seconds\": 1.00, \"tokens_per_second\": 4096}\n";
  return read_text(log);
}

/// Forty lines of Hugging Face's Trainer, which rounds to four digits and prints 0.0.
RunRecord hugging_face(const std::function<double(int)>& loss) {
  std::string log;
  for (int i = 1; i <= 40; ++i) {
    const double rounded = std::round(1e4 * loss(i)) / 1e4;
    log += "{'loss': " + (rounded == 0 ? std::string("0.0") : printed("%.4f", rounded)) +
           ", 'grad_norm': 0.0012, 'learning_rate': 1e-05, 'epoch': " + printed("%.2f", i / 4.0) + "}\n";
  }
  return read_text(log);
}

/// Known by heart: comes down by and by.
double learnt(int i) { return 4 * std::exp(-i / 3.0); }
/// From one line to the next.
double collapsing(int i) { return i < 20 ? 5 - 0.05 * i : 0; }

TEST(LossSeriesSpec, ALossThatComesDownToNothingByAndByIsTold) {
  const RunRecord two_digits = json_lines("%.2f", learnt);
  EXPECT_EQ(judge("loss_possible", two_digits).verdict, Verdict::holds) << contradictions(two_digits);
  // "0.00" stands for up to 0.005: nothing is to be told of it.
  EXPECT_EQ(judge("loss_possible", two_digits).note.find("by heart"), std::string::npos);
  const auto of_regression = [](int i) { return 0.08 * std::exp(-i / 3.0) + 3e-5; };
  for (const RunRecord& run :
       {json_lines("%.6f", learnt), hugging_face(learnt), hugging_face(of_regression)}) {
    const Result told = judge("loss_possible", run);
    EXPECT_EQ(told.verdict, Verdict::holds) << contradictions(run);
    EXPECT_NE(told.note.find("known by heart, a loss that is no cross-entropy, or targets in the input"),
              std::string::npos)
        << told.note;
    EXPECT_EQ(told.recomputed.low, 0);  // as it was tested
  }
}

/// Lines of Hugging Face's Trainer: each a loss and a gradient norm as printed.
RunRecord losses_and_norms(const std::vector<std::pair<const char*, const char*>>& lines,
                           const std::string& more = "") {
  std::string log;
  for (std::size_t i = 0; i < lines.size(); ++i)
    log += std::string("{'loss': ") + lines[i].first + ", 'grad_norm': " + lines[i].second +
           ", 'learning_rate': 1e-05" + more + ", 'epoch': " + printed("%.2f", (i + 1) / 10.0) + "}\n";
  return read_text(log);
}

TEST(LossSeriesSpec, ZerosThatTheTrainerPrintsForLossesThatWereNoneContradict) {
  for (const RunRecord& run : {losses_and_norms({{"0.0145", "0.004"}, {"0.0", "nan"}, {"0.0", "nan"}}),
                               losses_and_norms({{"80.8002", "nan"}, {"0.0", "nan"}}),
                               losses_and_norms({{"0.0", "nan"}, {"0.0", "nan"}})}) {
    const Result told = judge("loss_finite", run);
    ASSERT_EQ(told.verdict, Verdict::contradicts);
    ASSERT_EQ(told.causes.size(), 1u);
    EXPECT_EQ(told.causes[0].id, "loss_not_finite");
    EXPECT_NE(told.causes[0].text.find("logging_nan_inf_filter"), std::string::npos) << told.causes[0].text;
    EXPECT_EQ(told.note.find("losses go on"), std::string::npos) << told.note;
    const Result possible = judge("loss_possible", run);
    EXPECT_NE(possible.verdict, Verdict::contradicts);
    EXPECT_EQ(possible.note.find("by heart"), std::string::npos) << possible.note;
  }
}

TEST(LossSeriesSpec, ZerosThatMayBeLossesDoNotContradict) {
  for (const RunRecord& run : {
           losses_and_norms({{"2.1", "1.5"}, {"0.0", "0.3"}, {"0.0", "0.2"}}),  // gradients are numbers
           losses_and_norms({{"0.0", "0.1"}, {"0.2", "0.1"}, {"0.0", "nan"}}),  // zeros as such are printed
           losses_and_norms({{"0.0012", "0.1"}, {"0.0003", "0.1"}, {"0.0", "inf"}}),  // by and by
           losses_and_norms({{"2.1", "1.5"}, {"0.0", "nan"}, {"2.0", "1.4"}}),        // and losses go on
           losses_and_norms({{"0.0", "nan"}}),
           losses_and_norms({{"0.0", "nan"}, {"0.0", "nan"}}, ", 'reward': 0.5"),
       })
    EXPECT_EQ(judge("loss_finite", run).verdict, Verdict::holds) << contradictions(run);
}

TEST(LossSeriesSpec, ALossThatIsNothingAtOnceContradicts) {
  for (const RunRecord& run :
       {json_lines("%.2f", collapsing), json_lines("%.4f", collapsing), hugging_face(collapsing)}) {
    const Result told = judge("loss_possible", run);
    ASSERT_EQ(told.verdict, Verdict::contradicts);
    EXPECT_EQ(told.contradicted, 21);
    EXPECT_EQ(told.causes.at(0).id, "loss_collapsed");
    EXPECT_NE(told.causes.at(0).text.find("no cross-entropy"), std::string::npos);
    // Held to what its own lines leave possible, not to a bound that no rounding could print.
    EXPECT_GT(told.recomputed.low, 1);
  }
}

TEST(LossSeriesSpec, ASteepBeginningDoesNotHideIt) {
  const auto steep = [](int i) { return i < 6 ? 2 + 9 * std::exp(-i / 4.0) : 0; };
  EXPECT_EQ(judge("loss_possible", json_lines("%.4f", steep)).verdict, Verdict::contradicts);
  // Few lines for many steps: learnt as fast as that.
  const auto sparse = [](int i) { return i < 4 ? 10.8 * std::pow(0.4, i) : 0; };
  EXPECT_EQ(judge("loss_possible", json_lines("%.4f", sparse)).verdict, Verdict::holds);
}

TEST(LossSeriesSpec, ABatchOfFewEasyTokensIsNoCollapse) {
  // Single sequences: any may be known, and the last one of the log too.
  std::mt19937 draw(7);
  for (int k = 0; k < 20; ++k) {
    std::uniform_real_distribution<double> spread(0, 2.4);
    const RunRecord run = json_lines("%.4f", [&](int i) { return i % 8 == 0 ? 0 : spread(draw); });
    EXPECT_EQ(judge("loss_possible", run).verdict, Verdict::holds) << contradictions(run);
  }
}

TEST(LossSeriesSpec, NothingFromTheFirstLineOnIsNoCrossEntropyOfANewModel) {
  const auto nothing = [](int) { return 0.0; };
  RunRecord run = json_lines("%.4f", nothing);
  EXPECT_EQ(judge("loss_possible", run).verdict, Verdict::cannot_be_judged);
  run.weights = "new";
  const Result told = judge("loss_possible", run);
  EXPECT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 1);
  EXPECT_EQ(judge("loss_possible", json_lines("%.4f", [](int) { return -0.01; })).causes.at(0).id,
            "loss_negative");
}

/// Eighty steps, a restart from step 60, and forty more; `loss(step, again)`.
RunRecord restarted(const std::function<double(int, bool)>& loss) {
  std::string log;
  const auto line = [&](int step, bool again) {
    log += "{\"step\": " + std::to_string(step) + ", \"loss\": " + printed("%.4f", loss(step, again)) +
           ", \"lr\": 1e-05}\n";
  };
  for (int i = 1; i <= 80; ++i) line(i, false);
  for (int i = 61; i <= 100; ++i) line(i, true);
  return read_text(log);
}

TEST(LossSeriesSpec, SmallBatchesAreNoWeightsThatWereNotRestored) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 draw(seed);
    std::normal_distribution<double> normal(1.2, 0.3);
    const RunRecord run = restarted([&](int, bool) { return normal(draw); });
    EXPECT_EQ(judge("resume", run).verdict, Verdict::holds) << seed << "\n" << contradictions(run);
  }
}

TEST(LossSeriesSpec, WeightsThatWereNotRestoredShowOverTheScatter) {
  for (const double scatter : {0.01, 0.1, 0.3}) {
    std::mt19937 draw(5);
    std::normal_distribution<double> normal(0, scatter);
    // Back to an untrained model's; or, of steady losses, an optimizer that forgot its moments.
    for (const double rise : {6.0, 10 * scatter}) {
      const RunRecord run = restarted([&](int step, bool again) {
        return 2.5 - 0.005 * step + normal(draw) + (again ? rise * std::exp(-(step - 61) / 20.0) : 0);
      });
      const Result told = judge("resume", run);
      ASSERT_EQ(told.verdict, Verdict::contradicts) << scatter << " " << rise;
      EXPECT_EQ(told.causes.at(0).id, "weights_not_resumed");
      EXPECT_NE(told.causes.at(0).text.find("or the batches after it are harder"), std::string::npos);
    }
  }
}

TEST(LossSeriesSpec, OneHardBatchBehindARestartSaysNothing) {
  const RunRecord run = restarted(
      [](int step, bool again) { return 2.5 + 0.01 * (step % 3) + (again && step < 63 ? 2.0 : 0.0); });
  EXPECT_EQ(judge("resume", run).verdict, Verdict::holds) << contradictions(run);
}

TEST(LossSeriesSpec, AFallingLossIsComparedStepByStep) {
  // As low as before at the same steps, higher than the lines directly before the restart.
  const RunRecord run =
      restarted([](int step, bool) { return 11 * std::exp(-step / 40.0) + 0.01 * (step % 3); });
  EXPECT_EQ(judge("resume", run).verdict, Verdict::holds) << contradictions(run);
}

}  // namespace
}  // namespace assay::spec::audit::loss_series_test
