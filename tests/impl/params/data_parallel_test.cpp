// labels: parity property
// ranks: 1 2 3 4
// Data parallel over Gloo: however a batch is cut into ranks and micro-batches, the step is the reference's
// on the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "impl/comm/launch.hpp"
#include "reference/train_step.hpp"
#include "spec/batch/batch.hpp"
#include "spec/data/sample_order.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::data_parallel_test {
namespace {

using tests::Allowed;
using tests::Values;

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

run::StepSettings settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 0, .z_loss = 1e-3};
}

/// This rank's micro-batches of a global batch, dealt as the loader deals them.
std::vector<reference::Batch> dealt(const reference::Batch& whole, const spec::Batch& batch) {
  std::vector<reference::Batch> mine;
  for (std::int64_t m = 0; m < batch.accumulation; ++m) {
    const std::int64_t first =
        spec::data::first_index({.seed = 0, .samples = whole.B, .sequences = whole.B},
                                {.micro = batch.micro, .ranks = batch.ranks}, world().rank(), m);
    mine.push_back(tests::sequences(whole, first, first + batch.micro));
  }
  return mine;
}

TEST(DataParallelImpl, LossAndGradientEqualTheOneShotBatch) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const spec::ModelSpec model = tests::tiny_model(seed);
    const auto micro = static_cast<std::int64_t>(1 + seed % 3);
    const auto accumulation = static_cast<std::int64_t>(1 + seed / 3 % 3);
    const spec::Batch batch = spec::batch_of(micro * accumulation * world().size(), micro, world().size());
    const auto whole = tests::tiny_batch(model, batch.sequences, 5, static_cast<tests::Documents>(seed % 2),
                                         static_cast<tests::Ignored>(seed / 2 % 4), seed);
    tests::StepRunner trainer(model, Dtype::f64, at::kCPU, world(), settings(), seed);
    const auto result = trainer.step(dealt(whole, batch), static_cast<double>(whole.valid_tokens()), 1e-3);

    const auto expected = reference::step_gradients(reference::initial_state(model, seed).parameters, model,
                                                    {whole}, settings().z_loss);
    const std::string where =
        tests::describe(model) + " micro " + std::to_string(micro) + " x " + std::to_string(accumulation);
    EXPECT_NEAR(result.cross_entropy, expected.cross_entropy, 1e-12 * expected.cross_entropy) << where;
    EXPECT_NEAR(result.z_loss, expected.z_loss, 1e-12 * expected.z_loss) << where;
    // The gradient is one vector: errors are relative to its largest entry (some parameters' share is exactly
    // zero).
    double largest = 0;
    for (const auto& [name, gradient] : expected.gradients)
      largest = std::max(largest, gradient.flat().abs().maxCoeff());
    for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters) {
      const auto& gradient = expected.gradients.at(parameter.name);
      const std::vector<double> bound(static_cast<std::size_t>(parameter.size), 1e-12 * largest);
      EXPECT_TRUE(tests::close(tests::values(trainer.buffers().gradients, parameter),
                               Values{gradient.shape(), {gradient.flat().begin(), gradient.flat().end()}},
                               Allowed::elementwise(bound), /*zeros_expected=*/true))
          << parameter.name << " " << where;
    }
    EXPECT_GT(largest, 1e-3) << where;
  }
}

TEST(DataParallelImpl, InitialAndUpdatedWeightsAreTheSameBitsOnEveryRank) {
  const spec::ModelSpec model = tests::tiny_model(2);
  tests::StepRunner trainer(model, Dtype::f32, at::kCPU, world(), settings(), 2);
  const auto same_everywhere = [&] {
    const at::Tensor& master = trainer.buffers().master;
    const std::string mine(static_cast<const char*>(master.const_data_ptr()), master.nbytes());
    for (const std::string& theirs : world().all_gather(mine))
      if (theirs != mine) return false;
    return true;
  };
  EXPECT_TRUE(same_everywhere());
  const std::int64_t sequences = 2 * world().size();
  const auto whole = tests::tiny_batch(model, sequences, 5, tests::Documents::whole, tests::Ignored::some, 4);
  for (int step = 0; step < 3; ++step)
    trainer.step(dealt(whole, spec::batch_of(sequences, 1, world().size())),
                 static_cast<double>(whole.valid_tokens()), 1e-3);
  EXPECT_TRUE(same_everywhere());
}

TEST(DataParallelImpl, ANonFiniteGradientNamesTheRankThatHadIt) {
  const spec::ModelSpec model = tests::tiny_model(1);
  tests::StepRunner trainer(model, Dtype::f32, at::kCPU, world(), settings(), 1);
  const int culprit = world().size() - 1;
  if (world().rank() == culprit)
    trainer.buffers().weights[trainer.buffers().inventory.at("model.layers.0.mlp.down_proj.weight").offset] =
        std::numeric_limits<float>::quiet_NaN();
  const auto batch = tests::tiny_batch(model, 1, 5, tests::Documents::whole, tests::Ignored::none, 1);
  try {
    trainer.step({batch}, static_cast<double>(batch.valid_tokens() * world().size()), 1e-3);
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank " + std::to_string(culprit) + ":"), std::string::npos) << text;
    for (int rank = 0; rank < culprit; ++rank)
      EXPECT_EQ(text.find("rank " + std::to_string(rank) + ":"), std::string::npos) << text;
  }
}

TEST(DataParallelImpl, AGradientThatOverflowsInTheSumIsNamed) {
  const spec::ModelSpec model = tests::tiny_model(1);
  const auto batch = tests::tiny_batch(model, 6, 5, tests::Documents::whole, tests::Ignored::none, 1);
  // Gradients are inversely proportional to the count of valid tokens: this one brings the largest to 0.6 of
  // what fp32 holds, on every rank alike.
  const auto self = make_self_communicator();
  tests::StepRunner alone(model, Dtype::f32, at::kCPU, *self, settings(), 1);
  alone.step({batch}, 1, 1e-3);
  const double largest = alone.buffers().gradients.abs().max().item<double>();
  const double valid_tokens = largest / (0.6 * std::numeric_limits<float>::max());
  tests::StepRunner trainer(model, Dtype::f32, at::kCPU, world(), settings(), 1);
  if (world().size() == 1) {
    EXPECT_NO_THROW(trainer.step({batch}, valid_tokens, 1e-3)) << "not only the sum overflows";
    return;
  }
  try {
    trainer.step({batch}, valid_tokens, 1e-3);
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("is finite on every rank, its sum over ranks is not"), std::string::npos) << text;
    EXPECT_NE(text.find("gradient of "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace assay::impl::data_parallel_test
