// labels: unit
// What is just inside its limit is not warned of, what is just outside is.
#include "impl/run/warnings.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>

#include "tests/support/example_run.hpp"

namespace assay::impl::run::warnings_test {
namespace {

using spec::record::Warning;

TEST(WarningsImpl, AFirstLossBeyondFourStandardDeviationsOnEitherSide) {
  spec::record::RunStart start;
  start.expected_first_loss = {.mean = 5.5, .standard_deviation = 0.01};
  const auto at_deviations = [&](double deviations) {
    return first_loss_warning(5.5 + 0.01 * deviations, start);
  };
  for (const double inside : {0.0, 3.9, -3.9}) EXPECT_EQ(at_deviations(inside), std::nullopt) << inside;
  for (const double outside : {4.1, -4.1}) {
    const auto warning = at_deviations(outside);
    ASSERT_TRUE(warning.has_value()) << outside;
    EXPECT_EQ(warning->code, "first_loss");
    EXPECT_EQ(warning->step, 1);
  }
  EXPECT_NE(
      at_deviations(-4.1)->text.find("is 5.4590, expected 5.5000 +- 0.0100 for an untrained model: -4.1 "
                                     "standard deviations off; look at "),
      std::string::npos)
      << at_deviations(-4.1)->text;
}

TEST(WarningsImpl, AFirstLossOfWhichNothingIsExpectedIsNotJudged) {
  spec::record::RunStart start;
  EXPECT_EQ(first_loss_warning(9, start), std::nullopt);
  start.expected_first_loss = {.mean = 5.5, .standard_deviation = 0};
  EXPECT_EQ(first_loss_warning(9, start), std::nullopt);
}

/// log 256 = 5.5452: trained weights are better than a uniform guess, initial ones need not be.
TEST(WarningsImpl, AFirstLossOfTrainedWeightsAboveThatOfAUniformGuess) {
  spec::record::RunStart start;
  start.vocab = 256;
  start.settings = {{"model.weights", std::string("none")}};
  EXPECT_EQ(first_loss_warning(5.6, start), std::nullopt);
  start.settings = {{"model.weights", std::string("a/folder")}};
  EXPECT_EQ(first_loss_warning(5.5, start), std::nullopt);
  const auto warning = first_loss_warning(5.6, start);
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->code, "first_loss");
  EXPECT_NE(warning->text.find("is 5.6000, and a uniform guess has log V = 5.5452: "), std::string::npos)
      << warning->text;
}

TEST(WarningsImpl, OptionsWithoutEffectAreOneLine) {
  EXPECT_EQ(options_text({}), std::nullopt);
  const auto many = options_text(std::vector<std::string>(1000, "x = 1 (a)"));
  EXPECT_TRUE(many->ends_with("x = 1 (a) and 980 more")) << *many;
  EXPECT_LT(many->size(), 400u);
  EXPECT_EQ(options_text({"use_cache = true (a)", "ep_size = 1 (b)"}),
            "config.json, without effect on training: use_cache = true (a), ep_size = 1 (b)");
}

TEST(WarningsImpl, MemoryBeyondTwoPercentOfThePlanOnEitherSide) {
  spec::record::Memory memory;
  memory.step = 3, memory.planned_bytes = 1000;
  EXPECT_EQ(memory_plan_warning(memory), std::nullopt) << "nothing was measured";
  const auto measured = [&](std::int64_t bytes) {
    memory.measured_bytes = bytes;
    return memory_plan_warning(memory);
  };
  for (const std::int64_t inside : {981, 1000, 1019}) EXPECT_EQ(measured(inside), std::nullopt) << inside;
  ASSERT_TRUE(measured(979) && measured(1021));
  EXPECT_EQ(measured(979)->code, "memory_plan");
  EXPECT_EQ(measured(979)->step, 3);
  EXPECT_NE(measured(979)->text.find("took 2.1 % less memory than planned"), std::string::npos);
  EXPECT_NE(measured(1021)->text.find("took 2.1 % more memory than planned"), std::string::npos);
  memory.moment = "validation, the head";
  EXPECT_EQ(measured(500), std::nullopt) << "what takes most has not come yet";
  EXPECT_TRUE(measured(1021));
  memory.moment = "", memory.load = 1.25;
  EXPECT_EQ(measured(500), std::nullopt) << "larger loads may come";
  EXPECT_TRUE(measured(1021));
}

TEST(WarningsImpl, AStepFasterThanThePeakAllows) {
  spec::record::RunStart start = tests::example_start();
  spec::record::Step step = tests::example_step(7);
  EXPECT_EQ(above_peak_warning(step, start), std::nullopt) << "no peak is known";
  start.peak_flops = 1e9;
  step.mfu = 0.4, step.hfu = 0.5, step.executed_flops = 1.25e8;
  EXPECT_EQ(above_peak_warning(step, start), std::nullopt);
  step.hfu = {}, step.executed_flops = 3e10;
  const auto warning = above_peak_warning(step, start);
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->code, "above_peak");
  EXPECT_EQ(warning->step, 7);
  EXPECT_NE(warning->text.find("3.000e+10 FLOPs in 2.500e-01 s are more than the peak of 1.000e+09 FLOP/s"),
            std::string::npos)
      << warning->text;
  step.mfu = {}, step.hfu = 0.5;
  EXPECT_TRUE(above_peak_warning(step, start).has_value());
}

TEST(WarningsImpl, ARecordThatWaitsForTheDisk) {
  EXPECT_EQ(record_waits_warning(0, "a/run.jsonl", 0), std::nullopt);
  const auto warning = record_waits_warning(1, "a/run.jsonl", EIO);
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->code, "record_waits");
  EXPECT_EQ(warning->text.rfind("a/run.jsonl: Input/output error; the record is kept in memory", 0), 0u)
      << warning->text;
}

TEST(WarningsImpl, TheLearningRateBeforeAndAfterALongerSchedule) {
  spec::RunConfig then;
  then.steps = 10, then.learning_rate = 1, then.warmup_steps = 0,
  then.schedule = spec::ScheduleKind::constant;
  spec::RunConfig now = then;
  now.steps = 40, now.learning_rate = 2;
  const auto warning = longer_schedule_warning(then, now, 10);
  ASSERT_TRUE(warning);
  EXPECT_EQ(warning->step, 11);
  EXPECT_EQ(warning->text.rfind("this run was planned for 10 steps and goes on to 40: the learning rate goes "
                                "from 1.00e+00 to 2.00e+00, as",
                                0),
            0u)
      << warning->text;
  // A rate that stays is no news, to what would be printed of it.
  now.learning_rate = 1.001;
  EXPECT_FALSE(longer_schedule_warning(then, now, 10));
  now.learning_rate = 1.01;
  EXPECT_TRUE(longer_schedule_warning(then, now, 10));
  now.steps = 10;
  EXPECT_FALSE(longer_schedule_warning(then, now, 10)) << "no longer schedule";
}

spec::record::RankPlacement on_processors(std::int64_t rank, const std::string& processors) {
  return {.rank = rank,
          .host = "node7",
          .device = "cuda:" + std::to_string(rank),
          .threads = 4,
          .gpu = "GPU-" + std::to_string(rank),
          .processors = processors,
          .memory_nodes = "0-1",
          .gpu_node = 1,
          .gpu_processors = "32-63,96-127"};
}

TEST(WarningsImpl, ARankThatMayNotRunNearItsGpu) {
  spec::record::RunStart start;
  start.ranks = {on_processors(0, "0-127"), on_processors(1, "0-31,96"), on_processors(2, "40")};
  EXPECT_EQ(numa_warning(start), std::nullopt);
  start.ranks.push_back(on_processors(3, "0-31"));
  auto warning = numa_warning(start);
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->code, "numa");
  EXPECT_EQ(warning->text.rfind("rank 3 on node7 may run on processors 0-31 alone, none of which is of its "
                                "GPU's NUMA node 1 (32-63,96-127): ",
                                0),
            0u)
      << warning->text;
  start.ranks.push_back(on_processors(4, "64-95"));
  warning = numa_warning(start);
  EXPECT_NE(warning->text.find("; 2 ranks are so: "), std::string::npos) << warning->text;
  for (auto& place : start.ranks) place.gpu_node = {};
  EXPECT_EQ(numa_warning(start), std::nullopt);
}

TEST(WarningsImpl, AFinalLossAboveThatOfAUniformGuess) {
  spec::record::RunStart start;
  start.vocab = 256;  // log V = 5.5452
  start.expected_first_loss = {.mean = 5.55, .standard_deviation = 0.01};
  const auto warned = [&](std::int64_t steps, std::optional<double> loss) {
    spec::record::RunEnd end;
    end.steps = steps, end.final_loss = loss;
    const auto warning = final_loss_warning(end, start);
    EXPECT_EQ(warning ? warning->code : "final_loss", "final_loss");
    return warning.has_value();
  };
  EXPECT_FALSE(warned(1000, 5.545));
  EXPECT_TRUE(warned(1000, 5.546));
  EXPECT_FALSE(warned(19, 5.56)) << "a run of a few steps ends where it began";
  EXPECT_TRUE(warned(20, 5.56));
  EXPECT_FALSE(warned(19, 5.5899));
  EXPECT_TRUE(warned(19, 5.5901)) << "worse than untrained";
  EXPECT_FALSE(warned(1000, {}));
}

TEST(WarningsImpl, AGradientNormThatExploded) {
  const auto warned = [](int steps, double before, double last) {
    NormHistory all;
    std::vector<spec::record::Step> end;
    for (int i = 0; i < steps; ++i) all.add(before);
    for (int i = 0; i < 10; ++i) {
      all.add(last);
      end.emplace_back().gradient_norm = last;
    }
    const auto warning = exploded_norm_warning(end, all);
    EXPECT_EQ(warning ? warning->code : "gradient_norm", "gradient_norm");
    return warning.has_value();
  };
  EXPECT_FALSE(warned(100, 1, 9));
  EXPECT_TRUE(warned(100, 1, 12));
  EXPECT_TRUE(warned(100, 1e-6, 1.2e-5));
  EXPECT_FALSE(warned(100, 12, 1)) << "it fell";
  EXPECT_FALSE(warned(39, 1, 1000)) << "too few to tell";
  EXPECT_FALSE(exploded_norm_warning({}, {}).has_value());
}

TEST(WarningsImpl, TheMedianOfNormsIsKnownToTenPercent) {
  NormHistory history;
  EXPECT_FALSE(history.median());
  for (int i = 1; i <= 101; ++i) history.add(0.01 * i);
  history.add(NAN), history.add(INFINITY), history.add(0);
  EXPECT_EQ(history.count(), 101);
  EXPECT_NEAR(*history.median(), 0.51, 0.051);
}

}  // namespace
}  // namespace assay::impl::run::warnings_test
