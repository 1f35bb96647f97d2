// labels: unit property
#include "reference/train_step.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/model/inventory.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::train_step_test {
namespace {

using tests::Allowed;
using tests::Documents;
using tests::Ignored;
using tests::joined;
using tests::Values;

/// The same sums in another order, through under 900 dependent roundings (as in model_test.cpp): 1e-13.
const Allowed rounding = Allowed::relative(gamma(900, unit_roundoff(Dtype::f64)));

Values losses(const StepGradients& step) { return {{2}, {step.cross_entropy, step.z_loss}}; }

TrainState drawn_state(const spec::ModelSpec& model, std::uint64_t seed) {
  return {
      .parameters = tests::drawn_parameters(model, seed), .moment1 = zeros(model), .moment2 = zeros(model)};
}

RC_GTEST_PROP(TrainStepReference, AnySplitOfTheBatchGivesTheWholeBatch, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto documents = *rc::gen::element(Documents::whole, Documents::packed);
  const auto ignored = *rc::gen::element(Ignored::none, Ignored::some, Ignored::sequences, Ignored::most);
  const auto batch = tests::tiny_batch(model, *rc::gen::inRange<Index>(1, 7), 5, documents, ignored, seed);
  auto pieces = tests::micro_batches(batch, *rc::gen::inRange<Index>(1, 4));
  if (*rc::gen::arbitrary<bool>()) std::reverse(pieces.begin(), pieces.end());

  const auto whole = step_gradients(parameters, model, {batch}, 1e-3);
  const auto split = step_gradients(parameters, model, pieces, 1e-3);
  RC_ASSERT(split.valid_tokens == batch.valid_tokens());
  ASSAY_RC_CLOSE(losses(split), losses(whole), rounding);
  ASSAY_RC_CLOSE(joined(split.gradients), joined(whole.gradients), rounding);
}

TEST(TrainStepReference, ALossOfUnevenMicroBatchesIsNoMeanOfMeans) {
  const auto model = tests::corner_models().front();
  const auto parameters = tests::drawn_parameters(model, 1);
  const auto many = tests::tiny_batch(model, 1, 8, Documents::whole, Ignored::none, 2);
  const auto one = tests::tiny_batch(model, 1, 8, Documents::whole, Ignored::most, 3);
  const double loss_of_many = step_gradients(parameters, model, {many}, 0).cross_entropy;
  const double loss_of_one = step_gradients(parameters, model, {one}, 0).cross_entropy;
  ASSAY_EXPECT_CLOSE((Values{{1}, {step_gradients(parameters, model, {many, one}, 0).cross_entropy}}),
                     (Values{{1}, {(8 * loss_of_many + loss_of_one) / 9}}), rounding);
}

TEST(TrainStepReference, RefusesABatchInWhichNoTargetCountsAndKeepsTheState) {
  const auto model = tests::corner_models().front();
  auto batch = tests::tiny_batch(model, 1, 4, Documents::whole, Ignored::none, 2);
  std::fill(batch.targets.begin(), batch.targets.end(), Batch::ignored);
  auto state = drawn_state(model, 1);
  try {
    train_step(state, model, {batch}, {}, 1e-3);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "cross_entropy_c3");
  }
  EXPECT_EQ(state.step, 0);
  EXPECT_EQ(joined(state.parameters).data, joined(drawn_state(model, 1).parameters).data);
}

RC_GTEST_PROP(TrainStepReference, TheFirstStepLeavesClippedGradientsInTheMoments, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto batch = tests::tiny_batch(model, seed);
  auto state = drawn_state(model, seed);
  const auto step = step_gradients(state.parameters, model, {batch}, 0);
  const double clip = *rc::gen::element(0.0, 0.01, 1e6);
  const Hyperparameters hyperparameters{.beta1 = 0.5, .beta2 = 0.75, .clip = clip};
  const auto result = train_step(state, model, {batch}, hyperparameters, 1e-3);

  RC_ASSERT(state.step == 1);
  RC_ASSERT((result.cross_entropy == step.cross_entropy && result.z_loss == 0));
  RC_ASSERT(result.valid_tokens == step.valid_tokens);
  const Values gradient = joined(step.gradients);
  double squares = 0;
  for (const double entry : gradient.data) squares += entry * entry;
  const double norm = std::sqrt(squares);
  const double coefficient = clip == 0 ? 1 : std::min(1.0, clip / (norm + 1e-6));
  ASSAY_RC_CLOSE((Values{{2}, {result.gradient_norm / norm, result.clip_coefficient / coefficient}}),
                 (Values{{2}, {1, 1}}), rounding);
  Values mean = gradient, mean_of_squares = gradient;
  for (double& entry : mean.data) entry *= 0.5 * coefficient;
  for (double& entry : mean_of_squares.data) entry *= 0.25 * coefficient * coefficient * entry;
  ASSAY_RC_CLOSE(joined(state.moment1), mean, rounding);
  ASSAY_RC_CLOSE(joined(state.moment2), mean_of_squares, rounding);
}

RC_GTEST_PROP(TrainStepReference, WeightDecayReachesMatricesOnly, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto batch = tests::tiny_batch(model, seed);
  const auto before = drawn_state(model, seed);
  auto decayed = before, plain = before;
  const double learning_rate = 0.25, weight_decay = 0.5;
  train_step(decayed, model, {batch}, {.weight_decay = weight_decay}, learning_rate);
  train_step(plain, model, {batch}, {.weight_decay = 0}, learning_rate);
  for (const auto& parameter : spec::inventory(model).parameters) {
    Tensor<double> expected = plain.parameters.at(parameter.name);
    if (parameter.matrix())
      expected.flat() -= learning_rate * weight_decay * before.parameters.at(parameter.name).flat();
    ASSAY_RC_CLOSE(tests::values(decayed.parameters.at(parameter.name)), tests::values(expected), rounding);
  }
}

TEST(TrainStepReference, StepsOnOneBatchFitIt) {
  const auto model = tests::corner_models().front();
  const auto batch = tests::tiny_batch(model, 2, 6, Documents::packed, Ignored::some, 4);
  auto state = initial_state(model, 5);
  std::vector<double> loss;
  loss.reserve(60);
  for (int step = 0; step < 60; ++step)
    loss.push_back(train_step(state, model, {batch}, {}, 2e-2).cross_entropy);
  EXPECT_NEAR(loss.front(), std::log(static_cast<double>(model.vocab)), 0.7);
  EXPECT_LT(loss.back(), 0.5 * loss.front());
}

}  // namespace
}  // namespace assay::reference::train_step_test
