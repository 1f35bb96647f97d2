// labels: unit
// Schedules that trainers really run, steps that loss scaling leaves out, losses that are no cross-entropy:
// honest logs of them hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::schedules_test {
namespace {

using tests::read_mapped;

constexpr double peak = 3e-4, least = 1e-5;
constexpr int warmup = 10, end = 100, decay = 20;

/// A log of Megatron-LM whose learning rate behind the warm-up is least + (peak - least) x left(step).
RunRecord megatron(const std::string& style, const std::string& more, const std::function<double(int)>& rate,
                   const std::string& skips = "  0") {
  std::string out =
      "  lr ........................................ 0.0003\n  lr_decay_style ............................ " +
      style + "\n" + more +
      "  lr_warmup_iters ........................... 10\n  lr_decay_iters ............................ 100\n"
      "  min_lr .................................... 1e-05\n  train_iters ............................... "
      "100\n"
      "  global_batch_size ......................... 32\n";
  for (int i = 1; i <= end; ++i) {
    char line[512];
    std::snprintf(line, sizeof line,
                  " iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | "
                  "learning rate: %.6E | global batch size:    32 | lm loss: 8.0E+00 | loss scale: 1.0 | "
                  "grad norm: 1.234 | number of skipped iterations: %s | number of nan iterations:   0 |\n",
                  i, end, 32 * i, rate(i), skips.c_str());
    out += line;
  }
  return read_mapped(out);
}

double risen(int i, double then) { return i <= warmup ? peak * i / warmup : then; }
double between(double left) { return least + left * (peak - least); }

TEST(SchedulesSpec, InverseSquareRootIsKnown) {
  const auto rate = [](int i) {
    return risen(i, std::max(least, peak * std::sqrt(static_cast<double>(warmup) / i)));
  };
  const RunRecord honest = megatron("inverse-square-root", "", rate);
  EXPECT_EQ(judge("learning_rate", honest).verdict, Verdict::holds) << contradictions(honest);
  EXPECT_EQ(judge("learning_rate", honest).note, "");
  const RunRecord cosine = megatron("inverse-square-root", "", [](int i) {
    return risen(i, between((1 + std::cos(std::numbers::pi * (i - warmup) / (end - warmup))) / 2));
  });
  EXPECT_EQ(judge("learning_rate", cosine).verdict, Verdict::contradicts);
}

/// Another lowest rate is one number for all lines.
TEST(SchedulesSpec, AFactorFromTheMiddleOnIsNoOtherLowestRate) {
  const auto cosine = [](int i) {
    return (1 + std::cos(std::numbers::pi * (i - warmup) / (end - warmup))) / 2;
  };
  const auto cause = [&](const std::function<double(int)>& rate) {
    const Result told = judge("learning_rate", megatron("cosine", "", rate));
    return told.causes.empty() ? "" : told.causes.front().id;
  };
  EXPECT_EQ(cause([&](int i) { return risen(i, between(cosine(i))); }), "");
  for (const double other : {0.0, 3e-5, 1e-4})
    EXPECT_EQ(cause([&](int i) { return risen(i, other + cosine(i) * (peak - other)); }),
              "schedule_other_minimum")
        << other;
  for (const double times : {1.1, 1.5, 0.9})
    EXPECT_EQ(cause([&](int i) { return risen(i, between(cosine(i))) * (i > 50 && i < end ? times : 1); }),
              "schedule_other")
        << times;
}

/// The schedule waits for steps whose gradients overflow. Three of them stood in lines that are lost.
TEST(SchedulesSpec, StepsThatWereLeftOutBeforeTheLogBeginsAreForgiven) {
  const auto log = [](bool from_the_start, int waits) {
    RunRecord record = megatron("linear", "", [&](int i) {
      const int done = i > 12 ? i - waits : i;
      return risen(done, between(static_cast<double>(end - done) / (end - warmup)));
    });
    if (!from_the_start) record.steps.erase(record.steps.begin(), record.steps.begin() + 40);
    return judge("learning_rate", record);
  };
  EXPECT_EQ(log(false, 0).verdict, Verdict::holds);
  EXPECT_EQ(log(false, 3).verdict, Verdict::holds);
  EXPECT_EQ(log(true, 0).verdict, Verdict::holds);
  EXPECT_EQ(log(true, 3).verdict, Verdict::contradicts) << "no line says that a step was left out";
  // Before the first step there is none to leave out.
  const auto late = [](std::ptrdiff_t lost_lines) {
    RunRecord record = megatron("linear", "", [](int i) {
      const int done = std::max(0, i - 3);
      return risen(done, between(static_cast<double>(end - done) / (end - warmup)));
    });
    record.steps.erase(record.steps.begin(), record.steps.begin() + lost_lines);
    return judge("learning_rate", record).verdict;
  };
  EXPECT_EQ(late(5), Verdict::holds);
  EXPECT_EQ(late(0), Verdict::contradicts);
}

TEST(SchedulesSpec, APlateauEndsWhereItsDecayBegins) {
  const std::string decay_of_20 = "  lr_wsd_decay_iters ........................ 20\n";
  const auto wsd = [](double (*left)(double)) {
    return [left](int i) {
      return risen(i, between(i <= end - decay ? 1 : left((i - end + decay) / static_cast<double>(decay))));
    };
  };
  for (double (*left)(double) : {+[](double x) { return 1 - x; }, +[](double x) { return 1 - std::sqrt(x); },
                                 +[](double x) { return 2 * std::exp2(-x) - 1; },
                                 +[](double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; }}) {
    const RunRecord honest = megatron("WSD", decay_of_20, wsd(left));
    EXPECT_EQ(judge("learning_rate", honest).verdict, Verdict::holds) << contradictions(honest);
    // Without its length any fall is possible.
    EXPECT_EQ(judge("learning_rate", megatron("wsd", "", wsd(left))).verdict, Verdict::holds);
  }
  const RunRecord early = megatron("WSD", decay_of_20, [](int i) {
    return risen(i, between(1 - (i - warmup) / static_cast<double>(end - warmup)));
  });
  EXPECT_EQ(judge("learning_rate", early).verdict, Verdict::contradicts);
}

TEST(SchedulesSpec, ASchedulesWordIsReadInAnyCaseAndAnUnknownOneIsNotJudged) {
  const auto straight = [](int i) {
    return risen(i, between(1 - (i - warmup) / static_cast<double>(end - warmup)));
  };
  EXPECT_EQ(judge("learning_rate", megatron("Linear", "", straight)).verdict, Verdict::holds);
  EXPECT_EQ(judge("learning_rate", megatron("COSINE", "", straight)).verdict, Verdict::contradicts);
  const Result unknown = judge("learning_rate", megatron("rex", "", straight));
  EXPECT_EQ(unknown.verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(unknown.note, "the shape of the schedule \"rex\"");
}

TEST(SchedulesSpec, AScheduleMayWaitForStepsThatAreLeftOut) {
  // Two iterations in each line's window: every rate is that of one or two steps before.
  const auto behind = [](int i) { return i <= warmup ? peak * i / warmup : 0; };
  const RunRecord never = megatron("linear", "", behind, "  1");
  EXPECT_EQ(judge("learning_rate", never).verdict, Verdict::contradicts);
  const RunRecord all = megatron(
      "linear", "", [](int) { return 0.0; }, "  1");
  EXPECT_EQ(judge("learning_rate", all).verdict, Verdict::holds) << contradictions(all);
  EXPECT_EQ(judge("learning_rate", megatron("linear", "", [](int) { return 0.0; })).verdict,
            Verdict::contradicts);
}

std::string printed(const char* loss, const char* norm) {
  return std::string("{'loss': ") + loss + ", 'grad_norm': " + norm +
         ", 'learning_rate': 1e-05, 'epoch': 0.01}\n";
}

TEST(SchedulesSpec, AGradientThatOverflowsBetweenFiniteLossesIsASkippedStep) {
  const RunRecord scaled = read_mapped(printed("2.6541", "nan") + printed("2.6022", "inf") +
                                       printed("2.5107", "1.7342") + printed("2.4101", "1.5342"));
  const Result told = judge("loss_finite", scaled);
  EXPECT_EQ(told.verdict, Verdict::holds);
  EXPECT_NE(told.note.find("2 steps with a gradient that is no number, the first in line 1"),
            std::string::npos);
  // The loss does not go on.
  const RunRecord diverged = read_mapped(printed("2.6541", "1.5") + printed("2.6022", "nan") +
                                         printed("nan", "nan") + printed("nan", "nan"));
  EXPECT_EQ(judge("loss_finite", diverged).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("loss_finite", diverged).causes.at(0).text.find("the run diverged"), 0u);
  const RunRecord one = read_mapped(printed("2.6541", "1.5") + printed("nan", "1.5") + printed("2.6", "1.5"));
  EXPECT_EQ(judge("loss_finite", one).causes.at(0).id, "loss_not_finite");
  EXPECT_EQ(judge("loss_finite", one).causes.at(0).text.find("diverged"), std::string::npos);
  // No scale falls for so long.
  std::string never;
  for (int i = 0; i < 100; ++i) never += printed("2.6", "nan");
  EXPECT_EQ(judge("loss_finite", read_mapped(never)).causes.at(0).id, "gradient_not_finite");
  // At the end only fp16's loss scaling excuses it.
  RunRecord last = read_mapped(printed("2.6541", "1.5") + printed("2.6022", "nan"));
  EXPECT_EQ(judge("loss_finite", last).verdict, Verdict::holds);
  last.dtype = "float16";
  EXPECT_EQ(judge("loss_finite", last).verdict, Verdict::holds);
  last.dtype = "bf16";
  EXPECT_EQ(judge("loss_finite", last).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("loss_finite", last).causes.at(0).id, "gradient_not_finite");
}

TEST(SchedulesSpec, TheLossOfRewardsAndPreferencesIsNoCrossEntropy) {
  const std::string grpo =
      "{'loss': 0.0, 'grad_norm': 0.2578, 'learning_rate': 9.5e-07, 'reward': 0.87, 'kl': 0.0, 'epoch': "
      "0.01}\n"
      "{'loss': -0.0013, 'grad_norm': 0.3001, 'learning_rate': 8.5e-07, 'reward': 0.95, 'kl': 0.01, 'epoch': "
      "0.03}\n";
  const std::string dpo =
      "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-07, 'rewards/chosen': 0.0, 'epoch': 0.01}\n"
      "{'loss': 0.0, 'grad_norm': 0.0001, 'learning_rate': 4e-07, 'rewards/chosen': 8.1, 'epoch': 0.02}\n";
  const std::string state =
      R"({"global_step": 2, "log_history": [{"epoch": 0.1, "kl": 0.1, "loss": 0.0, "reward": 0.1, "step": 1}, )"
      R"({"epoch": 0.2, "kl": 0.2, "loss": -0.1, "reward": 0.2, "step": 2}], "max_steps": 2})";
  const std::string lines =
      "{\"step\": 1, \"loss\": 0.0, \"reward\": 0.1}\n{\"step\": 2, \"loss\": -0.1, \"reward\": 0.2}\n";
  for (const RunRecord& record :
       {read_mapped(grpo), read_mapped(dpo), read_mapped(state), read_mapped(lines),
        read_mapped("step,loss,kl\n1,0.0,0.1\n2,-0.1,0.2\n", "step=step,loss=loss")}) {
    EXPECT_EQ(judge("loss_possible", record).verdict, Verdict::cannot_be_judged) << record.format.name;
    EXPECT_TRUE(consistent(record)) << contradictions(record);
  }
  EXPECT_EQ(judge("loss_possible", read_mapped(printed("0.0", "1.0") + printed("-0.1", "1.0"))).verdict,
            Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::schedules_test
