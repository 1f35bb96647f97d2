// labels: parity property fault
// Training steps in FP8: emulated on a CPU they are the reference's to 1e-11, and neither recompute, nor when
// weights are quantised, nor what was captured or gathered changes a bit.
#include <gtest/gtest.h>

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

/// FP8 is computed at all, and differs from the compile type by what two casts an operand explain: 2^-4 an
/// entry of E4M3 at most, far less in a sum, and more than rounding in fp64.
TEST_P(Fp8StepImpl, TheFirstLossIsNearThatWithoutFp8) {
  const spec::ModelSpec model = fp8_model(false);
  const Trained none = train(model, {}), fp8 = train(model, {.linear = {.recipe = GetParam()}});
  EXPECT_NEAR(fp8.numbers[0] / none.numbers[0], 1, 1e-3);
  EXPECT_GT(std::abs(fp8.numbers[0] / none.numbers[0] - 1), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8StepImpl,
                         testing::Values(Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8),
                         [](const auto& recipe) { return std::string(to_string(recipe.param)); });

}  // namespace
}  // namespace assay::impl::fp8_step_test
