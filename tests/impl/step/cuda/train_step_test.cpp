// labels: gpu parity
// Whole training steps on the GPU against those of the reference.
#include <gtest/gtest.h>

#include <iostream>

#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/step/train_step_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_train_step_test {
namespace {

TEST(TrainStepCuda, TwentyStepsInFp64EqualTheReference) {
  ASSAY_NEEDS_GPU();
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    parity::compare(tests::tiny_model(seed), seed, 20, 2, at::kCUDA);
}

/// Router biases, groups, both forms of the balance loss, with and without a capacity (layout_settings).
TEST(TrainStepCuda, ExpertsInFp64EqualTheReference) {
  ASSAY_NEEDS_GPU();
  const auto communicator = make_self_communicator();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    tests::LayoutCase c{.seed = seed,
                        .micro = static_cast<std::int64_t>(1 + seed % 2),
                        .accumulation = static_cast<std::int64_t>(1 + seed % 3),
                        .documents = static_cast<tests::Documents>(seed % 2),
                        .ignored = static_cast<tests::Ignored>(seed % 4)};
    c.experts = true;
    c.recompute = spec::all_recomputes[seed % std::size(spec::all_recomputes)];
    EXPECT_EQ(tests::difference_from_reference(c, spec::Layout{}, *communicator, at::kCUDA), "")
        << tests::describe(c, spec::Layout{});
  }
}

TEST(TrainStepCuda, EveryCornerModelEqualsTheReference) {
  ASSAY_NEEDS_GPU();
  for (const spec::ModelSpec& model : tests::corner_models()) parity::compare(model, 5, 3, 1, at::kCUDA);
}

TEST(TrainStepCuda, ModelsWithLatentAttentionEqualTheReference) {
  ASSAY_NEEDS_GPU();
  run::StepSettings how = parity::settings();
  how.adamw.eps = 1e-5;  // an entry's gradient may be rounding
  for (const spec::ModelSpec& model : tests::latent_models()) parity::compare(model, 5, 3, 1, at::kCUDA, how);
  for (std::uint64_t seed = 300; seed < 310; ++seed)
    parity::compare(tests::latent_model(seed), seed, 3, 1 + static_cast<std::int64_t>(seed % 4), at::kCUDA,
                    how);
}

TEST(TrainStepCuda, Fp32StaysWithinItsRoundings) {
  ASSAY_NEEDS_GPU();
  for (std::uint64_t seed = 0; seed < 8; ++seed) parity::compare_low_precision(Dtype::f32, seed, at::kCUDA);
}

TEST(TrainStepCuda, LatentAttentionStaysWithinItsRoundings) {
  ASSAY_NEEDS_GPU();
  parity::compare_latent_low_precision(at::kCUDA, 4);
}

/// Heads of DeepSeek-V3's widths, which cuDNN computes on Hopper, in every setting of recompute: the same
/// steps twice give the same bits in a fixed order, and so do all settings.
TEST(TrainStepCuda, LatentHeadsOf192And128GiveTheSameBitsTwiceInEverySettingOfRecompute) {
  ASSAY_NEEDS_GPU();
  spec::ModelSpec model = tests::latent_models().front();
  model.heads = model.kv_heads = 4, model.head_dim = 192, model.context = 512;
  model.latent->rope_dim = 64, model.latent->value_dim = 128;
  const auto communicator = make_self_communicator();
  const at::Device gpu(at::kCUDA, 0);
  set_deterministic(true);
  attention::new_choices();
  const auto train = [&](spec::Recompute recompute) {
    tests::StepRunner trainer(model, Dtype::bf16, gpu, *communicator, parity::settings(), 3, recompute);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto batch =
          tests::tiny_batch(model, 2, 512, tests::Documents::whole, tests::Ignored::none, step);
      trainer.step(tests::micro_batches(batch, 1), static_cast<double>(batch.valid_tokens()),
                   parity::learning_rate);
    }
    return trainer.buffers().master.clone();
  };
  const at::Tensor once = train(spec::Recompute::none);
  for (const spec::Recompute recompute : spec::all_recomputes)
    EXPECT_TRUE(at::equal(train(recompute), once)) << to_string(recompute);
  for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
  set_deterministic(false);
}

TEST(TrainStepCuda, Bf16StaysWithinItsRoundings) {
  ASSAY_NEEDS_GPU();
  for (std::uint64_t seed = 0; seed < 8; ++seed) parity::compare_low_precision(Dtype::bf16, seed, at::kCUDA);
}

TEST(TrainStepCuda, TheSameStepsTwiceGiveTheSameBits) {
  ASSAY_NEEDS_GPU();
  const spec::ModelSpec model = tests::tiny_model(3);
  const auto communicator = make_self_communicator();
  const auto train = [&] {
    tests::StepRunner trainer(model, Dtype::f32, at::kCUDA, *communicator, parity::settings(), 3);
    for (std::uint64_t step = 0; step < 5; ++step) {
      const auto batch = tests::tiny_batch(model, 4, 7, tests::Documents::whole, tests::Ignored::none, step);
      trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()),
                   parity::learning_rate);
    }
    return trainer.buffers().master.clone();
  };
  EXPECT_TRUE(at::equal(train(), train()));
}

/// The trainer's own shape of attention, whose fused backward adds in any order unless it is told not to.
TEST(TrainStepCuda, DeterministicStepsInBf16GiveTheSameBitsTwiceWithEveryBackend) {
  ASSAY_NEEDS_GPU();
  spec::ModelSpec model = tests::tiny_model(3);
  model.heads = 8, model.kv_heads = 4, model.head_dim = 128, model.context = 2048;
  const auto communicator = make_self_communicator();
  const at::Device gpu(at::kCUDA, 0);
  set_deterministic(true);
  attention::new_choices();
  for (const auto backend :
       {spec::AttentionBackend::automatic, spec::AttentionBackend::cudnn, spec::AttentionBackend::flash}) {
    const auto train = [&] {
      tests::StepRunner trainer(model, Dtype::bf16, gpu, *communicator, parity::settings(), 3);
      trainer.model().attend_by(backend);
      for (std::uint64_t step = 0; step < 4; ++step) {
        const auto batch =
            tests::tiny_batch(model, 2, 2048, tests::Documents::whole, tests::Ignored::none, step);
        trainer.step(tests::micro_batches(batch, 1), static_cast<double>(batch.valid_tokens()),
                     parity::learning_rate);
      }
      return trainer.buffers().master.clone();
    };
    try {
      const at::Tensor once = train();
      for (int again = 0; again < 3; ++again)
        EXPECT_TRUE(at::equal(train(), once)) << static_cast<int>(backend);
    } catch (const UserError& refused) {  // a backend without such a backward says so, and is not run
      EXPECT_EQ(refused.code(), ExitCode::usage);
      std::cout << "heads deterministic: " << refused.what() << std::endl;
    }
    for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
  }
  set_deterministic(false);
}

TEST(TrainStepCuda, ANonFiniteGradientStopsBeforeTheUpdateAndNamesTheTensor) {
  ASSAY_NEEDS_GPU();
  const spec::ModelSpec model = tests::tiny_model(1);
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, Dtype::f32, at::kCUDA, *communicator, parity::settings(), 1);
  const auto batch = tests::tiny_batch(model, 2, 5, tests::Documents::whole, tests::Ignored::none, 1);
  trainer.buffers().weights[trainer.buffers().inventory.at("model.layers.0.mlp.down_proj.weight").offset] =
      std::numeric_limits<float>::infinity();
  const at::Tensor before = trainer.buffers().master.clone(), moment = trainer.buffers().moment1.clone();
  try {
    trainer.step({batch}, static_cast<double>(batch.valid_tokens()), parity::learning_rate);
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    EXPECT_NE(std::string(error.what()).find("gradient of "), std::string::npos) << error.what();
  }
  EXPECT_TRUE(at::equal(trainer.buffers().master, before));
  EXPECT_TRUE(at::equal(trainer.buffers().moment1, moment));
}

}  // namespace
}  // namespace assay::impl::cuda_train_step_test
