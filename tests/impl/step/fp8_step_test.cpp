// labels: parity property fault
// Training steps in FP8: emulated on a CPU they are the reference's to 1e-11; neither recompute nor the time
// at which weights are quantised changes a bit, and ranks that hold replicas or shards train alike.
#include <gtest/gtest.h>

#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"

namespace assay::impl::fp8_step_test {
namespace {

using namespace parity;

/// Weights, losses and gradient norms after some steps.
struct Trained {
  at::Tensor weights;
  std::vector<double> numbers;
};

Trained train(const spec::ModelSpec& model, const Fp8Case& of, std::uint64_t steps = 3) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer = fp8_runner(model, of, at::kCPU, *communicator, 3);
  Trained out;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const run::StepResult result = fp8_step(trainer, fp8_batch(model, step));
    out.numbers.push_back(result.cross_entropy);
    out.numbers.push_back(result.gradient_norm);
  }
  out.weights = trainer.buffers().master.clone();
  return out;
}

/// Two steps, the same whatever is recomputed and whenever weights are quantised.
Trained expect_the_same_bits(const spec::ModelSpec& model, Fp8Case of) {
  const Trained first = train(model, of, 2);
  for (const spec::Recompute recompute : spec::all_recomputes)
    for (const QuantiseWeights weights : {QuantiseWeights::step, QuantiseWeights::use}) {
      of.recompute = recompute, of.linear.weights = weights;
      const Trained other = train(model, of, 2);
      EXPECT_TRUE(at::equal(first.weights, other.weights)) << to_string(recompute);
      EXPECT_EQ(first.numbers, other.numbers) << to_string(recompute);
    }
  return first;
}

class Fp8StepImpl : public testing::TestWithParam<Recipe> {};

TEST_P(Fp8StepImpl, StepsInFp64EqualTheReference) {
  for (const spec::ModelSpec& model : fp8_models())
    compare_fp8(model,
                {.linear = {.recipe = GetParam(), .unquantised = {}, .weights = QuantiseWeights::step}}, 2,
                at::kCPU);
}

TEST_P(Fp8StepImpl, LayersLeftOutEqualTheReference) {
  compare_fp8(fp8_model(false), {.linear = {.recipe = GetParam(), .unquantised = {1, 3}}}, 2, at::kCPU);
  compare_fp8(fp8_experts_model(false), {.linear = {.recipe = GetParam(), .unquantised = {1}}}, 1, at::kCPU);
}

TEST_P(Fp8StepImpl, RecomputeAndTheTimeOfQuantisingChangeNoBit) {
  for (const auto& [dtype, model] : {std::pair{Dtype::f32, fp8_model(true)},
                                     {Dtype::bf16, fp8_model(true)},
                                     {Dtype::f32, fp8_latent_model(false)},
                                     {Dtype::bf16, fp8_experts_model(true)}}) {
    Fp8Case of{.linear = {.recipe = GetParam(), .unquantised = {2}},
               .recompute = spec::Recompute::none,
               .dtype = dtype};
    expect_the_same_bits(model, of);
  }
}

/// FP8 is computed at all, and differs from the compute type by what two casts an operand explain: 2^-4 an
/// entry of E4M3 at most, far less in a sum, and more than rounding in fp64.
TEST_P(Fp8StepImpl, TheFirstLossIsNearThatWithoutFp8) {
  for (const spec::ModelSpec& model : {fp8_model(false), fp8_experts_model(true)}) {
    const Trained none = train(model, {}, 1), fp8 = train(model, {.linear = {.recipe = GetParam()}}, 1);
    EXPECT_NEAR(fp8.numbers[0] / none.numbers[0], 1, 1e-3) << model.name;
    EXPECT_GT(std::abs(fp8.numbers[0] / none.numbers[0] - 1), 1e-9) << model.name;
  }
}

/// Two ranks with a micro-batch each are one with both: scales are those of a micro-batch, and of the whole
/// weights, which no rank may quantise before the new ones are there.
void expect_two_ranks_train_as_one(const spec::ModelSpec& model, Recipe recipe, bool experts = false) {
  using spec::DataParallel;
  const std::vector<double> alone =
      train(model, {.linear = {.recipe = recipe, .unquantised = {}, .experts = experts}}).numbers;
  for (const auto& [data, weights] : {std::pair{DataParallel::replicate, QuantiseWeights::step},
                                      {DataParallel::replicate, QuantiseWeights::use},
                                      {DataParallel::zero1, QuantiseWeights::step},
                                      {DataParallel::shard, QuantiseWeights::use}}) {
    const Fp8Case of{.linear = {.recipe = recipe, .unquantised = {}, .weights = weights, .experts = experts},
                     .layout = spec::layout_of(data, 2)};
    std::vector<double> together;
    tests::on_thread_ranks(2, [&](Communicator& communicator) {
      tests::StepRunner trainer = fp8_runner(model, of, at::kCPU, communicator, 3);
      for (std::uint64_t step = 0; step < 3; ++step) {
        const reference::Batch batch = fp8_batch(model, step);
        const auto mine = tests::micro_batches(batch, 2).at(static_cast<std::size_t>(communicator.rank()));
        const run::StepResult result =
            trainer.step({mine}, static_cast<double>(batch.valid_tokens()), learning_rate);
        if (communicator.rank() != 0) continue;
        together.push_back(result.cross_entropy);
        together.push_back(result.gradient_norm);
      }
    });
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(together[i], alone[i], 1e-11 * alone[i])
          << model.name << ", " << to_string(data) << ", number " << i;
  }
}

TEST_P(Fp8StepImpl, TwoRanksOfEveryLayoutTrainAsOne) {
  for (const spec::ModelSpec& model : {fp8_model(false), fp8_experts_model(true)})
    expect_two_ranks_train_as_one(model, GetParam());
}

/// Routed experts in FP8: outputs and inputs' gradients of codes, weights' gradients of values.
TEST(Fp8ExpertsImpl, StepsInFp64EqualTheReference) {
  const auto linear = [](QuantiseWeights weights, std::vector<std::int64_t> unquantised = {}) {
    return Fp8Case{.linear = {.recipe = Recipe::fp8_tensor,
                              .unquantised = std::move(unquantised),
                              .weights = weights,
                              .experts = true}};
  };
  compare_fp8(fp8_whole_experts_model(false), linear(QuantiseWeights::step), 2, at::kCPU);
  compare_fp8(fp8_whole_experts_model(true), linear(QuantiseWeights::use), 1, at::kCPU);
  compare_fp8(fp8_whole_experts_model(false), linear(QuantiseWeights::use, {2}), 1, at::kCPU);
}

TEST(Fp8ExpertsImpl, RecomputeAndTheTimeOfQuantisingChangeNoBit) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const spec::ModelSpec model = fp8_whole_experts_model(false);
    Fp8Case of{.linear = {.recipe = Recipe::fp8_tensor, .unquantised = {}, .experts = true},
               .recompute = spec::Recompute::none,
               .dtype = dtype};
    const Trained first = expect_the_same_bits(model, of);
    of.linear.experts = false;
    EXPECT_FALSE(at::equal(first.weights, train(model, of, 2).weights))
        << (dtype == Dtype::bf16 ? "bf16" : "f32");
  }
}

TEST(Fp8ExpertsImpl, TwoRanksOfEveryLayoutTrainAsOne) {
  expect_two_ranks_train_as_one(fp8_whole_experts_model(false), Recipe::fp8_tensor, /*experts=*/true);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8StepImpl,
                         testing::Values(Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8),
                         [](const auto& recipe) { return std::string(to_string(recipe.param)); });

}  // namespace
}  // namespace assay::impl::fp8_step_test
