// labels: parity property fault
// Training steps in FP8: emulated on a CPU they are the reference's to 1e-11; neither recompute nor the time
// at which weights are quantised changes a bit, and ranks that hold replicas or shards train alike.
#include <gtest/gtest.h>

#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"

namespace assay::impl::fp8_step_test {
namespace {

using namespace parity;

/// Weights, losses and gradient norms after three steps.
struct Trained {
  at::Tensor weights;
  std::vector<double> numbers;
};

Trained train(const spec::ModelSpec& model, const Fp8Case& of) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer = fp8_runner(model, of, at::kCPU, *communicator, 3);
  Trained out;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const run::StepResult result = fp8_step(trainer, fp8_batch(model, step));
    out.numbers.push_back(result.cross_entropy);
    out.numbers.push_back(result.gradient_norm);
  }
  out.weights = trainer.buffers().master.clone();
  return out;
}

class Fp8StepImpl : public testing::TestWithParam<Recipe> {};

TEST_P(Fp8StepImpl, StepsInFp64EqualTheReference) {
  for (const bool qwen : {false, true})
    compare_fp8(fp8_model(qwen),
                {.linear = {.recipe = GetParam(), .unquantised = {}, .weights = QuantiseWeights::step}}, 4,
                at::kCPU);
}

TEST_P(Fp8StepImpl, LayersLeftOutEqualTheReference) {
  compare_fp8(fp8_model(false), {.linear = {.recipe = GetParam(), .unquantised = {1, 3}}}, 2, at::kCPU);
}

TEST_P(Fp8StepImpl, RecomputeAndTheTimeOfQuantisingChangeNoBit) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    Fp8Case of{.linear = {.recipe = GetParam(), .unquantised = {2}},
               .recompute = spec::Recompute::none,
               .dtype = dtype};
    const spec::ModelSpec model = fp8_model(true);
    const Trained first = train(model, of);
    for (const spec::Recompute recompute : spec::all_recomputes)
      for (const QuantiseWeights weights : {QuantiseWeights::step, QuantiseWeights::use}) {
        of.recompute = recompute, of.linear.weights = weights;
        const Trained other = train(model, of);
        EXPECT_TRUE(at::equal(first.weights, other.weights)) << to_string(recompute);
        EXPECT_EQ(first.numbers, other.numbers) << to_string(recompute);
      }
  }
}

/// FP8 is computed at all, and differs from the compute type by what two casts an operand explain: 2^-4 an
/// entry of E4M3 at most, far less in a sum, and more than rounding in fp64.
TEST_P(Fp8StepImpl, TheFirstLossIsNearThatWithoutFp8) {
  const spec::ModelSpec model = fp8_model(false);
  const Trained none = train(model, {}), fp8 = train(model, {.linear = {.recipe = GetParam()}});
  EXPECT_NEAR(fp8.numbers[0] / none.numbers[0], 1, 1e-3);
  EXPECT_GT(std::abs(fp8.numbers[0] / none.numbers[0] - 1), 1e-9);
}

/// Two ranks with a micro-batch each are one with both: scales are those of a micro-batch, and of the whole
/// weights, which no rank may quantise before the new ones are there.
TEST_P(Fp8StepImpl, TwoRanksOfEveryLayoutTrainAsOne) {
  using spec::DataParallel;
  const spec::ModelSpec model = fp8_model(false);
  const std::vector<double> alone = train(model, {.linear = {.recipe = GetParam()}}).numbers;
  for (const auto& [data, weights] : {std::pair{DataParallel::replicate, QuantiseWeights::step},
                                      {DataParallel::replicate, QuantiseWeights::use},
                                      {DataParallel::zero1, QuantiseWeights::step},
                                      {DataParallel::shard, QuantiseWeights::use}}) {
    const Fp8Case of{.linear = {.recipe = GetParam(), .unquantised = {}, .weights = weights},
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
      EXPECT_NEAR(together[i], alone[i], 1e-11 * alone[i]) << to_string(data) << ", number " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8StepImpl,
                         testing::Values(Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8),
                         [](const auto& recipe) { return std::string(to_string(recipe.param)); });

}  // namespace
}  // namespace assay::impl::fp8_step_test
