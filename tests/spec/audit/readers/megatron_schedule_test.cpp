// labels: unit
// Megatron's arguments as its programs print them: what its schedule goes by, and what lost lines leave of
// it.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/readers/megatron_arguments.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::megatron_schedule_test {
namespace {

using megatron_arguments_test::Arguments;
using megatron_arguments_test::cosine;
using megatron_arguments_test::run;

Verdict of_schedule(const std::string& log) { return judge("learning_rate", tests::read_text(log)).verdict; }

TEST(MegatronScheduleSpec, AWarmUpIsAShareOfTheDecayWhereOneIsStated) {
  const Arguments share = {{"lr_warmup_iters", "0"}, {"lr_warmup_fraction", "0.02"}};
  const auto rate = [](double warmup) {
    return [warmup](double step, double) { return cosine(step, warmup, 1000); };
  };
  EXPECT_EQ(of_schedule(run(share, rate(20))), Verdict::holds);
  EXPECT_EQ(of_schedule(run(share, rate(40))), Verdict::contradicts);
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "0"}}, rate(20))), Verdict::contradicts);
  // Without the line that may say another one, a warm-up of 0 need not rule.
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "0"}, {"lr_warmup_fraction", ""}}, rate(20))),
            Verdict::holds);
}

TEST(MegatronScheduleSpec, AWarmUpMayBeginAboveZero) {
  const auto rate = [](double step, double) { return cosine(step, 50, 1000, 3e-5); };
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "50"}, {"lr_warmup_init", "3e-05"}}, rate)), Verdict::holds);
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "50"}}, rate)), Verdict::contradicts);
}

TEST(MegatronScheduleSpec, AScheduleOfSamplesGoesByThoseSinceTheStart) {
  Arguments by_samples = {{"lr_decay_iters", "None"}, {"lr_decay_samples", "120000"},
                          {"lr_warmup_iters", "0"},   {"lr_warmup_samples", "2000"},
                          {"train_iters", "None"},    {"train_samples", "128000"}};
  const auto rate = [](double, double samples) { return cosine(samples, 2000, 120000); };
  const auto twice = [](double, double samples) { return cosine(samples, 4000, 120000); };
  EXPECT_EQ(of_schedule(run(by_samples, rate)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, twice)), Verdict::contradicts);
  // A batch that grows: no number of steps is that of the samples.
  const auto growing = [](int step) { return step < 40 ? 32.0 : step < 70 ? 64.0 : 128.0; };
  by_samples["rampup_batch_size"] = "['32', '32', '6400']";
  EXPECT_EQ(of_schedule(run(by_samples, rate, 0, growing)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, twice, 0, growing)), Verdict::contradicts);
  // The decay is as long as the run where none is stated, and a share goes before.
  by_samples["lr_decay_samples"] = by_samples["lr_warmup_samples"] = "None";
  by_samples["lr_warmup_fraction"] = "0.025";
  const auto share = [](double, double samples) { return cosine(samples, 3200, 128000); };
  EXPECT_EQ(of_schedule(run(by_samples, share, 0, growing)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, rate, 0, growing)), Verdict::contradicts);
}

/// The log with DeepSpeed's count of the steps that were left out before every `every`th line: all but every
/// third.
std::string with_deepspeeds_count(const std::string& log, int every) {
  std::string out;
  std::istringstream lines(log);
  int step = 0;
  for (std::string line; std::getline(lines, line); out += line + "\n")
    if (line.find("consumed samples") != std::string::npos && ++step % every == 0)
      out +=
          "[2023-08-15 06:31:44,231] [INFO] [logging.py:96:log_dist] [Rank 0] step=" + std::to_string(step) +
          ", skipped=" + std::to_string(step - step / 3) + ", lr=[1.5e-07], mom=[(0.9, 0.95)]\n";
  return out;
}

/// DeepSpeed's pipeline engine leaves steps out that the lines count as done: each waits in the schedule.
TEST(MegatronScheduleSpec, StepsThatDeepSpeedLeavesOutWait) {
  const Arguments pipeline = {{"deepspeed", "True"},     {"ds_pipeline_enabled", "True"},
                              {"fp16", "True"},          {"bf16", "False"},
                              {"lr_warmup_iters", "20"}, {"lr_decay_iters", "400"}};
  const auto waits = [](double step, double) { return cosine(std::floor(step / 3), 20, 400); };
  const auto more = [](double step, double) { return 1.05 * cosine(std::floor(step / 3), 20, 400); };
  EXPECT_EQ(of_schedule(run(pipeline, waits)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(pipeline, more)), Verdict::contradicts) << "above the highest rate";
  for (const int every : {1, 10}) {
    EXPECT_EQ(of_schedule(with_deepspeeds_count(run(pipeline, waits), every)), Verdict::holds) << every;
    EXPECT_EQ(of_schedule(with_deepspeeds_count(run(pipeline, more), every)), Verdict::contradicts) << every;
  }
  // Where every line has the count, no rate is left open.
  const auto two = [](double step, double) { return cosine(std::floor(step / 2), 20, 400); };
  EXPECT_EQ(of_schedule(run(pipeline, two)), Verdict::holds);
  EXPECT_EQ(of_schedule(with_deepspeeds_count(run(pipeline, two), 1)), Verdict::contradicts);
  // What shows it is the count, where the arguments are another trainer's.
  Arguments lost = pipeline;
  lost["deepspeed"] = lost["ds_pipeline_enabled"] = "";
  EXPECT_EQ(of_schedule(with_deepspeeds_count(run(lost, waits), 10)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(lost, waits)), Verdict::contradicts) << "every line counts none";
  Arguments bf16 = pipeline;
  bf16["fp16"] = "False", bf16["bf16"] = "True";
  EXPECT_EQ(of_schedule(run(bf16, waits)), Verdict::contradicts) << "nothing overflows";
}

/// Of a run whose gradients overflow, as many steps as lines are lost may have been left out.
TEST(MegatronScheduleSpec, StepsThatAreNotThereMayHaveBeenLeftOut) {
  const Arguments half = {
      {"fp16", "True"}, {"bf16", "False"}, {"lr_warmup_iters", "20"}, {"lr_decay_iters", "400"}};
  const auto without_middle = [&](double left_out) {
    std::string log =
        run(half, [&](double step, double) { return cosine(step <= 20 ? step : step - left_out, 20, 400); });
    const std::size_t from = log.find("iteration       21/"), to = log.find("iteration       81/");
    return log.erase(log.rfind('\n', from), log.rfind('\n', to) - log.rfind('\n', from));
  };
  EXPECT_EQ(of_schedule(without_middle(0)), Verdict::holds);
  EXPECT_EQ(of_schedule(without_middle(45)), Verdict::holds);
  EXPECT_EQ(of_schedule(without_middle(75)), Verdict::contradicts) << "only 60 are lost";
}

TEST(MegatronScheduleSpec, ALineThatIsLostLeavesAScheduleThatNothingContradicts) {
  const Arguments later = {{"lr_wsd_decay_iters", "None"}, {"lr_wsd_decay_style", "exponential"}};
  const auto all = [&](Arguments of) { return of.insert(later.begin(), later.end()), of; };
  const auto from_a_tenth = [](double step, double) { return cosine(step, 50, 800, 3e-5); };
  const auto by_share = [](double step, double) { return cosine(step, 20, 1000, 3e-6); };
  const auto by_samples = [](double, double samples) { return cosine(samples, 2000, 120000, 3e-5); };
  const auto with_the_run = [](double step, double) { return cosine(step, 0, 1000); };
  const std::vector<std::pair<Arguments, std::function<double(double, double)>>> runs = {
      {all({{"lr_decay_iters", "800"}, {"lr_warmup_init", "3e-05"}, {"lr_warmup_iters", "50"}}),
       from_a_tenth},
      {all({{"lr_warmup_fraction", "0.02"}, {"lr_warmup_init", "3e-06"}, {"lr_warmup_iters", "0"}}),
       by_share},
      {all({{"lr_decay_iters", "None"},
            {"lr_decay_samples", "120000"},
            {"lr_warmup_init", "3e-05"},
            {"lr_warmup_iters", "0"},
            {"lr_warmup_samples", "2000"},
            {"train_iters", "None"},
            {"train_samples", "128000"}}),
       by_samples},
      {all({{"lr_decay_iters", "None"}, {"lr_warmup_iters", "0"}}), with_the_run}};
  const std::vector<std::string> names = {"lr",
                                          "lr_decay_iters",
                                          "lr_decay_samples",
                                          "lr_decay_style",
                                          "lr_warmup_fraction",
                                          "lr_warmup_init",
                                          "lr_warmup_iters",
                                          "lr_warmup_samples",
                                          "lr_wsd_decay_iters",
                                          "lr_wsd_decay_style",
                                          "min_lr",
                                          "train_iters",
                                          "train_samples",
                                          "end of arguments"};
  for (const auto& [arguments, rate] : runs) {
    const std::string whole = run(arguments, rate);
    EXPECT_EQ(of_schedule(whole), Verdict::holds);
    const auto without = [](std::string log, const std::string& name) {
      const std::size_t at = log.find(name + ' ');
      if (at == std::string::npos) return log;
      const std::size_t begin = log.rfind('\n', at) + 1;
      return log.erase(begin, log.find('\n', at) + 1 - begin);
    };
    for (const std::string& first : names)
      for (const std::string& second : names)
        for (const char* third : {"lr_wsd_decay_iters", "lr_warmup_init", "train_samples"}) {
          const std::string left = without(without(without(whole, first), second), third);
          EXPECT_NE(of_schedule(left), Verdict::contradicts)
              << arguments.begin()->second << " without " << first << ", " << second << ", " << third;
        }
  }
}

TEST(MegatronScheduleSpec, AWarmUpOfNoStepsRulesNoScheduleThatMayGoBySamples) {
  // By samples, but the three lines that say so are lost.
  const std::string log = run({{"lr_decay_iters", "None"},
                               {"lr_warmup_iters", "0"},
                               {"lr_warmup_samples", ""},
                               {"train_iters", ""},
                               {"train_samples", ""}},
                              [](double, double samples) { return cosine(samples, 2000, 128000); });
  EXPECT_FALSE(tests::read_text(log)[Setting::warmup_steps]);
  EXPECT_NE(of_schedule(log), Verdict::contradicts);
}

TEST(MegatronScheduleSpec, AWarmUpThatBeginsAnywhereBeginsSomewhere) {
  // Versions before 2023 do not say where: at one rate, of which every line speaks.
  const Arguments unsaid = {{"lr_warmup_init", ""}, {"lr_warmup_iters", "50"}};
  const auto from = [](double start) {
    return [start](double step, double) { return cosine(step, 50, 1000, start); };
  };
  EXPECT_EQ(of_schedule(run(unsaid, from(0))), Verdict::holds);
  EXPECT_EQ(of_schedule(run(unsaid, from(3e-5))), Verdict::holds);
  EXPECT_EQ(of_schedule(run(unsaid, [](double step, double) { return cosine(step, 40, 1000); })),
            Verdict::contradicts);
  EXPECT_EQ(of_schedule(run(unsaid,
                            [](double step, double) {
                              const double honest = cosine(step, 50, 1000);
                              return step == 1 ? 1e-4 : step == 17 ? 1.4 * honest : honest;
                            })),
            Verdict::contradicts);
}

TEST(MegatronScheduleSpec, AStepThatIsLeftOutAgainAfterARestartIsLeftOutOnce) {
  // fp16: step 55 overflows, and once more after the restart from the checkpoint of step 50.
  std::string log =
      run({}, [](double step, double) { return cosine(step >= 55 ? step - 1 : step, 10, 1000); });
  const auto line = [&](int step) {
    char number[32];
    std::snprintf(number, sizeof number, "iteration %8d/", step);
    return log.rfind('\n', log.find(number)) + 1;
  };
  const std::size_t zero = log.find("skipped iterations:   0", line(55));
  log.replace(zero, 23, "skipped iterations:   1");
  const std::string again = log.substr(0, line(61)) + log.substr(line(51));
  EXPECT_EQ(of_schedule(log), Verdict::holds);
  EXPECT_EQ(of_schedule(again), Verdict::holds) << contradictions(tests::read_text(again));
}

/// A line that is cut before its count may be of a step that was left out: as many may lag as lines are cut.
TEST(MegatronScheduleSpec, StepsWhoseCountIsCutOffMayHaveBeenLeftOut) {
  const auto cut = [](const Arguments& arguments, double left_out) {
    std::string log = run(
        arguments, [&](double step, double) { return cosine(step < 40 ? step : step - left_out, 10, 1000); });
    for (const int step : {40, 41, 60}) {
      char number[32];
      std::snprintf(number, sizeof number, "iteration %8d/", step);
      const std::size_t from = log.find("lm loss", log.find(number));
      log.erase(from, log.find('\n', from) - from);
    }
    return log;
  };
  const Arguments half = {{"fp16", "True"}, {"bf16", "False"}}, brain = {{"fp16", "False"}, {"bf16", "True"}};
  for (const double left_out : {0.0, 1.0}) EXPECT_EQ(of_schedule(cut(half, left_out)), Verdict::holds);
  EXPECT_EQ(of_schedule(cut(half, 5)), Verdict::contradicts) << "only three are cut";
  EXPECT_EQ(of_schedule(cut(brain, 1)), Verdict::contradicts) << "nothing overflows";
}

}  // namespace
}  // namespace assay::spec::audit::megatron_schedule_test
