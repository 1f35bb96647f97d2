// labels: gpu
// Training steps in FP8 on a GPU: near the reference's FP8 step, and the same bits whatever is computed
// again, whenever weights are quantised, and replayed.
#include <gtest/gtest.h>

#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/fp8_gemm.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_fp8_step_test {
namespace {

using namespace parity;

const at::Device gpu(at::kCUDA, 0);

Fp8Case in_bf16(Recipe recipe, bool experts = false) {
  return {.linear = {.recipe = recipe, .unquantised = {}, .experts = experts}, .dtype = Dtype::bf16};
}

/// Weights after four steps, and the numbers of each.
struct Trained {
  at::Tensor weights;
  std::vector<double> numbers;
};

Trained train(const Fp8Case& of, bool captured = false) {
  const spec::ModelSpec model = fp8_model(true);
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer = fp8_runner(model, of, gpu, *communicator, 3);
  if (captured) trainer.executor().capture_with(run::make_cuda_graphs(gpu));
  Trained out;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const run::StepResult result = fp8_step(trainer, fp8_batch(model, 1));
    out.numbers.push_back(result.cross_entropy);
    out.numbers.push_back(result.gradient_norm);
  }
  std::string notices;
  for (const std::string& line : trainer.executor().new_notices()) notices += line + "\n";
  EXPECT_EQ(notices.find("are replayed") != std::string::npos, captured) << notices;
  out.weights = trainer.buffers().master.cpu();
  return out;
}

/// The gradient of a step on the GPU, in bf16, and those of the reference in fp64 from the same weights, with
/// the recipe and without. A value that bf16 rounds to the other side of a tie becomes the neighbouring code:
/// with a probability of about a hundredth, and an error as large as twelve roundings' variance. So the GPU's
/// gradient lies nearer to its own reference than FP8 moves the gradient; and FP8 was computed, since it lies
/// further from the plain one.
void expect_near_its_reference(const spec::ModelSpec& model, Recipe recipe, bool experts = false) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer = fp8_runner(model, in_bf16(recipe, experts), gpu, *communicator, 3);
  reference::TrainState state = reference::initial_state(model, 3);
  for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters)
    state.parameters.at(parameter.name) =
        reference::Tensor<double>(parameter.shape, tests::values(trainer.buffers().weights, parameter).data);
  const reference::Batch batch = fp8_batch(model, 1);
  const run::StepResult result =
      trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()), 1e-30);
  const reference::Recipes recipes = reference::recipes_of(in_bf16(recipe, experts).linear, model.layers);
  const auto micro_batches = tests::micro_batches(batch, 2);
  const auto fp8 = reference::step_gradients(state.parameters, model, micro_batches, settings().z_loss,
                                             recipes),
             plain = reference::step_gradients(state.parameters, model, micro_batches, settings().z_loss);
  reference::Parameters<double> ours;
  for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters)
    ours.emplace(parameter.name,
                 reference::Tensor<double>(parameter.shape,
                                           tests::values(trainer.buffers().gradients, parameter).data));
  const double own = distance(ours, fp8.gradients), moved = distance(fp8.gradients, plain.gradients),
               away = distance(ours, plain.gradients);
  std::cout << model.name << ", " << to_string(recipe) << ": gradient off by " << own
            << " of its size; FP8 moves it by " << moved << ", and the GPU's lies " << away
            << " from the plain one" << std::endl;
  EXPECT_LT(own, moved) << model.name;
  EXPECT_GT(away, own) << model.name;
  EXPECT_NEAR(result.cross_entropy, fp8.cross_entropy, 1e-2 * fp8.cross_entropy);
}

TEST(Fp8StepCuda, GradientsAreNearTheReferencesOwn) {
  ASSAY_NEEDS_GPU();
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block}) {
    if (const std::string why = fp8::refusal(recipe, gpu); !why.empty()) {
      std::cout << why << std::endl;
      continue;
    }
    for (const spec::ModelSpec& model : {fp8_model(false), fp8_latent_model(true), fp8_experts_model(false)})
      expect_near_its_reference(model, recipe);
    if (recipe == Recipe::fp8_tensor)
      for (const bool latent : {false, true})
        expect_near_its_reference(fp8_whole_experts_model(latent), recipe, /*experts=*/true);
  }
}

TEST(Fp8StepCuda, TheSameBitsHoweverItRuns) {
  ASSAY_NEEDS_GPU();
  set_deterministic(true);
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block}) {
    if (const std::string why = fp8::refusal(recipe, gpu); !why.empty()) {
      std::cout << why << std::endl;
      continue;
    }
    Fp8Case of = in_bf16(recipe);
    const Trained first = train(of);
    const auto expect_same = [&](const Trained& other, const std::string& what) {
      EXPECT_EQ(first.numbers, other.numbers) << what;
      EXPECT_TRUE(at::equal(first.weights, other.weights)) << what;
    };
    expect_same(train(of), "again");
    for (const spec::Recompute recompute : spec::all_recomputes)
      for (const QuantiseWeights weights : {QuantiseWeights::step, QuantiseWeights::use}) {
        of.recompute = recompute, of.linear.weights = weights;
        expect_same(train(of), std::string(to_string(recipe)) + " " + std::string(to_string(recompute)));
        if (recompute == spec::Recompute::norms_swiglu) expect_same(train(of, /*captured=*/true), "captured");
      }
  }
  set_deterministic(false);
}

}  // namespace
}  // namespace assay::impl::cuda_fp8_step_test
