#pragma once
// Whole training steps of the trainer against those of the reference, on any device: loss, gradient norm and
// every parameter.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/train_step.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::parity {

using tests::Allowed;
using tests::Values;

inline constexpr double learning_rate = 3e-3;

inline run::StepSettings settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1.0, .z_loss = 1e-3};
}

inline reference::Hyperparameters hyperparameters(const run::StepSettings& s) {
  return {.beta1 = s.adamw.beta1,
          .beta2 = s.adamw.beta2,
          .eps = s.adamw.eps,
          .weight_decay = s.adamw.weight_decay,
          .clip = s.clip,
          .z_loss = s.z_loss};
}

/// The largest difference of any parameter, relative to the largest entry of that parameter.
inline void expect_parameters_close(ParameterBuffers& buffers, const reference::Parameters<double>& expected,
                                    double relative, const std::string& where) {
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const auto& reference = expected.at(parameter.name);
    const Values wanted{reference.shape(), {reference.flat().begin(), reference.flat().end()}};
    EXPECT_TRUE(tests::close(tests::values(buffers.master, parameter), wanted, Allowed::relative(relative)))
        << parameter.name << " " << where;
  }
}

/// Trains `steps` steps on both sides and compares after each.
inline void compare(const spec::ModelSpec& model, std::uint64_t seed, int steps, std::int64_t micro,
                    at::Device device) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, Dtype::f64, device, *communicator, settings(), seed);
  reference::TrainState state = reference::initial_state(model, seed);
  expect_parameters_close(trainer.buffers(), state.parameters, 0, "initial " + tests::describe(model));
  for (int step = 0; step < steps; ++step) {
    const auto batch =
        tests::tiny_batch(model, 4, 7, step % 2 ? tests::Documents::packed : tests::Documents::whole,
                          static_cast<tests::Ignored>(step % 4), seed + static_cast<std::uint64_t>(step));
    const auto micro_batches = tests::micro_batches(batch, micro);
    const auto result = trainer.step(micro_batches, static_cast<double>(batch.valid_tokens()), learning_rate);
    const auto expected =
        reference::train_step(state, model, {batch}, hyperparameters(settings()), learning_rate);
    const std::string where = tests::describe(model) + " step " + std::to_string(step);
    EXPECT_NEAR(result.cross_entropy, expected.cross_entropy, 1e-11 * expected.cross_entropy) << where;
    EXPECT_NEAR(result.z_loss, expected.z_loss, 1e-11 * expected.z_loss) << where;
    EXPECT_NEAR(result.gradient_norm, expected.gradient_norm, 1e-11 * expected.gradient_norm) << where;
    EXPECT_NEAR(result.clip_coefficient, expected.clip_coefficient, 1e-11) << where;
    expect_parameters_close(trainer.buffers(), state.parameters, 1e-11, where);
    if (testing::Test::HasFailure()) return;
  }
}

/// Loss and gradient of one step in a low precision against the reference from the same (rounded) weights.
inline void compare_low_precision(Dtype dtype, std::uint64_t seed, at::Device device) {
  const spec::ModelSpec model = tests::tiny_model(seed);
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, dtype, device, *communicator, settings(), seed);
  reference::TrainState state = reference::initial_state(model, seed);
  for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters)
    state.parameters.at(parameter.name) =
        reference::Tensor<double>(parameter.shape, tests::values(trainer.buffers().weights, parameter).data);
  const auto batch = tests::tiny_batch(model, 3, 6, tests::Documents::whole, tests::Ignored::some, seed);
  const auto result = trainer.step({batch}, static_cast<double>(batch.valid_tokens()), 1e-30);
  const auto expected = reference::step_gradients(state.parameters, model, {batch}, settings().z_loss);
  // Each stored activation is rounded once, with unit u: per block 2 norms, 4 products, rope, attention,
  // swiglu and 2 residual sums (sums inside an op are in fp32 or better), twice for forward and backward, and
  // 6 around the blocks. Relative to the norm of the whole gradient, where no single cancellation dominates,
  // the effects add at worst.
  // Attention's fused kernels round probabilities and their gradients once more, and delta's y: 3 in a block.
  const double in_block = device.is_cuda() ? 11 + 3 : 11;
  const double u = unit_roundoff(dtype), roundings = 2 * (static_cast<double>(model.layers) * in_block + 6);
  EXPECT_NEAR(result.cross_entropy, expected.cross_entropy, gamma(roundings, u) * expected.cross_entropy);
  double error = 0, size = 0;
  for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters) {
    const Values got = tests::values(trainer.buffers().gradients, parameter);
    const auto& want = expected.gradients.at(parameter.name);
    for (std::size_t i = 0; i < got.data.size(); ++i) {
      error += std::pow(got.data[i] - want[static_cast<reference::Index>(i)], 2);
      size += std::pow(want[static_cast<reference::Index>(i)], 2);
    }
  }
  EXPECT_LE(std::sqrt(error / size), gamma(roundings, u)) << tests::describe(model);
  EXPECT_GT(std::sqrt(error / size), gamma(roundings, u) / 1000) << "the bound is too loose to mean anything";
}

}  // namespace assay::impl::parity
