// labels: unit
// How many rows routing brings to a rank's experts, against the memory that there is.
#include "impl/run/expert_loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "impl/run/start/memory_limits.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/random/philox.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::expert_loads_test {
namespace {

using spec::memory::Plan;
using spec::memory::Setting;
using Pass = ExpertLoads::Pass;

/// OLMoE of 16 layers, 64 experts and 8 of a token, on 2 expert ranks: routing brings at most twice the mean.
spec::RunConfig olmoe() {
  spec::RunConfig config;
  config.model = "olmoe-1b-7b", config.sequences = 8, config.micro = 4, config.sequence_length = 512;
  config.dtype = Dtype::bf16, config.expert_ranks = 2, config.data_parallel = spec::DataParallel::zero1;
  config.sample_sentences = 0;
  return config;
}
Plan plan_of(const spec::RunConfig& config, const std::optional<Count>& room) {
  return memory_plan(config, spec::find_model(config.model),
                     spec::batch_of(config.sequences, config.micro, 2), at::kCPU, {}, room);
}
Count peak_at(Setting setting, double load) {
  setting.load = load;
  return spec::memory::plan(setting).peak;
}

TEST(ExpertLoadsImpl, ThePlanIsOfTheLargestLoadThatFits) {
  const Setting equal = plan_of(olmoe(), {}).setting;
  EXPECT_EQ(equal.load, 1);
  const Count room = peak_at(equal, 1.5);
  EXPECT_EQ(plan_of(olmoe(), room).setting.load, spec::memory::load_that_fits(equal, room));
  EXPECT_EQ(plan_of(olmoe(), room).peak, room);
}

TEST(ExpertLoadsImpl, WhatDoesNotFitEndsThePassWithLoadBytesAndSettings) {
  const Setting equal = plan_of(olmoe(), {}).setting;
  const Count room = peak_at(equal, 1.5);
  const Plan plan = plan_of(olmoe(), room);
  ExpertLoads loads(plan, room);
  const auto refused = [&](const std::vector<double>& layers) -> std::string {
    try {
      for (std::size_t layer = 0; layer < layers.size(); ++layer)
        loads.arrived(static_cast<std::int64_t>(layer), layers[layer]);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  const std::vector<double> even(16, plan.setting.load), full(16, 2);
  std::vector<double> half(16, 1), turned(16, 2);
  for (std::size_t layer = 0; layer < 8; ++layer) half[layer] = 1.9, turned[layer] = 0.2;
  EXPECT_EQ(refused(full), "") << "a few tokens are not judged";
  loads.begin(Pass::step, 12);
  EXPECT_EQ(refused(even), "");
  EXPECT_EQ(refused(half), "") << "a layer above, others below: it fits";
  EXPECT_EQ(refused(turned), "") << "of the pass before nothing is left";
  const std::string text = refused(full);
  for (const std::string& words :
       {std::string("step 12: routing brings the experts of this rank up to 2.00 times the mean rows"),
        std::string("(parallel.expert = 2)"), std::string("there is room for "), std::string("batch.micro="),
        std::string("experts.capacity=1.25")})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(loads.largest(), 2);
}

/// Plans are made of loads that are rounded up and kept, and judge as a plan of the loads themselves does.
TEST(ExpertLoadsImpl, LoadsThatHaveFittedAreNotPlannedAgain) {
  const Setting equal = plan_of(olmoe(), {}).setting;
  const Count room = peak_at(equal, 1.5);
  const Plan plan = plan_of(olmoe(), room);
  ExpertLoads kept(plan, room);
  int refused = 0;
  for (std::uint64_t pass = 0; pass < 40; ++pass) {
    ExpertLoads fresh(plan, room);
    for (ExpertLoads* each : {&kept, &fresh}) each->begin(Pass::step, 1);
    // Around what there is room for: some layers above, some below.
    std::vector<double> loads;
    for (std::uint64_t layer = 0; layer < 16; ++layer)
      loads.push_back(
          1 +
          spec::random::Stream(7, spec::random::Site::test, static_cast<std::uint32_t>(pass)).uniform(layer));
    const auto ends = [&](ExpertLoads& held) {
      try {
        for (std::size_t layer = 0; layer < loads.size(); ++layer)
          held.arrived(static_cast<std::int64_t>(layer), loads[layer]);
        return false;
      } catch (const UserError&) {
        return true;
      }
    };
    const bool ended = ends(fresh);
    EXPECT_EQ(ends(kept), ended) << pass;
    Setting exact = equal;
    exact.sampled = 0, exact.layer_loads = loads;
    EXPECT_EQ(ended, spec::memory::plan(exact).peak > room) << pass;
    refused += ended ? 1 : 0;
  }
  EXPECT_GT(refused, 3);
  EXPECT_LT(refused, 37);
  // A step's passes, whose loads differ a little.
  ExpertLoads held(plan, room);
  for (std::uint64_t pass = 0; pass < 100; ++pass) {
    held.begin(Pass::step, 1);
    for (std::uint64_t layer = 0; layer < 16; ++layer)
      held.arrived(static_cast<std::int64_t>(layer),
                   (layer < 8 ? 1.7 : 1.1) + 0.04 * spec::random::Stream(7, spec::random::Site::test,
                                                                         static_cast<std::uint32_t>(pass))
                                                        .uniform(layer));
  }
  EXPECT_LE(held.plans(), 2 * 16) << "not one of each of 1,600 layers";
}

/// A pass without backward has the rows of one layer at a time.
TEST(ExpertLoadsImpl, AValidationIsJudgedByItsLargestLayer) {
  spec::RunConfig config = olmoe();
  config.sequences = 2, config.micro = 1, config.recompute = spec::Recompute::block, config.eval_share = 0.1;
  const Setting equal = plan_of(config, {}).setting;
  const Count room = peak_at(equal, 1.5);
  const Plan plan = plan_of(config, room);
  ASSERT_TRUE(plan.moment.starts_with("validation, ")) << plan.moment;
  ExpertLoads loads(plan, room);
  loads.begin(Pass::validation, 3);
  loads.arrived(0, 1.5);
  try {
    loads.arrived(1, 1.9);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("validation after step 3: routing brings", 0), 0u)
        << error.what();
  }
}

TEST(ExpertLoadsImpl, AWarningNamesWhatWouldHoldAnyRouting) {
  const Setting equal = plan_of(olmoe(), {}).setting;
  const Count most = peak_at(equal, 2);
  EXPECT_FALSE(ExpertLoads(plan_of(olmoe(), most), most).warning());
  const Count room = peak_at(equal, 1.5);
  const auto warning = ExpertLoads(plan_of(olmoe(), room), room).warning();
  ASSERT_TRUE(warning);
  EXPECT_EQ(warning->code, "expert_load");
  EXPECT_NE(warning->text.find("2.00 times the mean rows"), std::string::npos) << warning->text;
  EXPECT_NE(warning->text.find("set batch.micro="), std::string::npos) << warning->text;
  spec::RunConfig fp8 = olmoe();
  EXPECT_NE(warning->text.find("experts.capacity"), std::string::npos) << warning->text;
  fp8.linear = spec::quantise::Recipe::fp8_tensor;  // beside which a capacity is refused
  const Count room_of_fp8 = peak_at(plan_of(fp8, {}).setting, 1.5);
  const auto of_fp8 = ExpertLoads(plan_of(fp8, room_of_fp8), room_of_fp8).warning();
  ASSERT_TRUE(of_fp8);
  EXPECT_EQ(of_fp8->text.find("experts.capacity"), std::string::npos) << of_fp8->text;
  spec::RunConfig one = olmoe();
  one.expert_ranks = 1;
  EXPECT_FALSE(ExpertLoads(plan_of(one, room), room).warning());
}

/// Drawn ids.
class Samples final : public data::SampleSource {
 public:
  std::int64_t samples() const override { return 8; }
  std::vector<std::int64_t> samples_of_sources() const override { return {8}; }
  std::int64_t sequence_length() const override { return 16; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    const spec::random::Stream stream(3, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(stream.below(t, 11));
  }
  std::string description() const override { return "drawn samples"; }
};

/// Where there is room for equal loads alone, the rank whose untrained router sends more rows than that ends
/// its first step, before they have memory; with room for all none does.
TEST(ExpertLoadsImpl, ATrainerIsHeldToItsRoom) {
  spec::ModelSpec model = tests::sparse_model(3);
  model.vocab = 11, model.context = 16;
  model.experts = spec::Experts{.count = 6, .active = 2, .width = 8};
  spec::RunConfig config;
  config.sequences = 8, config.micro = 4, config.sequence_length = 16, config.steps = 2,
  config.warmup_steps = 1;
  config.decay_steps = 0, config.expert_ranks = 2, config.sample_sentences = 0;
  for (const bool all : {false, true}) {
    std::mutex mutex;
    std::string said;
    double largest = 0;
    const auto train = [&](Communicator& communicator) {
      const spec::Batch batch = spec::batch_of(8, 4, 2);
      const Plan equal = memory_plan(config, model, batch, at::kCPU);
      const Count room = all ? peak_at(equal.setting, spec::memory::most_load(equal.setting)) : equal.peak;
      ExpertLoads loads(memory_plan(config, model, batch, at::kCPU, {}, room), room);
      Trainer trainer(config, model, batch, at::kCPU, std::make_shared<Samples>(), communicator, &loads);
      trainer.initialise();
      trainer.start_after(0);
      try {
        trainer.step(false);
      } catch (const UserError& error) {
        const std::scoped_lock lock(mutex);
        said = error.what();
        throw;
      }
      const std::scoped_lock lock(mutex);
      largest = std::max(largest, loads.largest());
    };
    if (all) {
      tests::on_thread_ranks(2, train);
      EXPECT_EQ(said, "");
      EXPECT_GT(largest, 1);
    } else {
      EXPECT_ANY_THROW(tests::on_thread_ranks(2, train));
      EXPECT_EQ(said.rfind("step 1: routing brings the experts of this rank up to 1.", 0), 0u) << said;
    }
  }
}

}  // namespace
}  // namespace assay::impl::run::expert_loads_test
