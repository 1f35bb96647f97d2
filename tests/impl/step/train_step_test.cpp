// labels: parity property
// Whole training steps of the trainer against those of the reference: loss, gradient norm and every
// parameter.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/impl/step/train_step_parity.hpp"

namespace assay::impl::train_step_test {
namespace {

using parity::compare;
using parity::compare_low_precision;
using parity::learning_rate;
using parity::settings;

TEST(TrainStepImpl, TwentyStepsInFp64EqualTheReference) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) compare(tests::tiny_model(seed), seed, 20, 2, at::kCPU);
}

TEST(TrainStepImpl, EveryCornerModelEqualsTheReference) {
  for (const spec::ModelSpec& model : tests::corner_models()) compare(model, 5, 3, 1, at::kCPU);
}

TEST(TrainStepImpl, DrawnModelsEqualTheReference) {
  for (std::uint64_t seed = 100; seed < 120; ++seed)
    compare(tests::tiny_model(seed), seed, 2, 1 + static_cast<std::int64_t>(seed % 4), at::kCPU);
}

TEST(TrainStepImpl, ModelsWithExpertsEqualTheReference) {
  // A bias of keys hardly moves the loss: its gradient is rounding, of which a small eps makes an update.
  run::StepSettings how = settings();
  how.adamw.eps = 1e-5;
  for (std::uint64_t seed = 200; seed < 240; ++seed)
    compare(tests::sparse_model(seed), seed, 3, 1 + static_cast<std::int64_t>(seed % 4), at::kCPU, how);
}

TEST(TrainStepImpl, ModelsWithLatentAttentionEqualTheReference) {
  run::StepSettings how = settings();
  how.adamw.eps = 1e-5;  // as of experts: an entry's gradient may be rounding
  for (const spec::ModelSpec& model : tests::latent_models()) compare(model, 5, 3, 1, at::kCPU, how);
  for (std::uint64_t seed = 300; seed < 340; ++seed)
    compare(tests::latent_model(seed), seed, 3, 1 + static_cast<std::int64_t>(seed % 4), at::kCPU, how);
}

TEST(TrainStepImpl, Fp32StaysWithinItsRoundings) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) compare_low_precision(Dtype::f32, seed, at::kCPU);
}

TEST(TrainStepImpl, LatentAttentionStaysWithinItsRoundings) {
  parity::compare_latent_low_precision(at::kCPU, 20);
}

TEST(TrainStepImpl, Bf16StaysWithinItsRoundings) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) compare_low_precision(Dtype::bf16, seed, at::kCPU);
}

TEST(TrainStepImpl, TheSameStepsTwiceGiveTheSameBits) {
  const spec::ModelSpec model = tests::tiny_model(3);
  const auto communicator = make_self_communicator();
  const auto train = [&] {
    tests::StepRunner trainer(model, Dtype::f32, at::kCPU, *communicator, settings(), 3);
    for (std::uint64_t step = 0; step < 5; ++step) {
      const auto batch = tests::tiny_batch(model, 4, 7, tests::Documents::whole, tests::Ignored::none, step);
      trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()), learning_rate);
    }
    return trainer.buffers().master.clone();
  };
  EXPECT_TRUE(at::equal(train(), train()));
}

TEST(TrainStepImpl, ANonFiniteGradientStopsBeforeTheUpdateAndNamesTheTensor) {
  const spec::ModelSpec model = tests::tiny_model(1);
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, Dtype::f32, at::kCPU, *communicator, settings(), 1);
  const auto batch = tests::tiny_batch(model, 2, 5, tests::Documents::whole, tests::Ignored::none, 1);
  trainer.buffers().weights[trainer.buffers().inventory.at("model.layers.0.mlp.down_proj.weight").offset] =
      std::numeric_limits<float>::infinity();
  const at::Tensor before = trainer.buffers().master.clone(), moment = trainer.buffers().moment1.clone();
  try {
    trainer.step({batch}, static_cast<double>(batch.valid_tokens()), learning_rate);
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    EXPECT_EQ(error.code(), ExitCode::non_finite);
    const std::string text = error.what();
    EXPECT_NE(text.find("step 1"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("gradient of "), std::string::npos) << text;
  }
  EXPECT_TRUE(at::equal(trainer.buffers().master, before));
  EXPECT_TRUE(at::equal(trainer.buffers().moment1, moment));
}

TEST(TrainStepImpl, ANormThatOverflowsSaysThatEveryGradientIsFinite) {
  const spec::ModelSpec model = tests::tiny_model(1);
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, Dtype::f64, at::kCPU, *communicator, settings(), 1);
  const auto batch = tests::tiny_batch(model, 2, 5, tests::Documents::whole, tests::Ignored::none, 1);
  try {
    trainer.step({batch}, 1e-170,
                 learning_rate);  // gradients of 1e165 and more, whose squares no double holds
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    EXPECT_NE(std::string(error.what()).find("the sum of their squares is not"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace assay::impl::train_step_test
