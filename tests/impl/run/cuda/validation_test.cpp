// labels: gpu
// Validation on a GPU: between captured steps too it leaves training as it is, and gives the CPU's number.
#include "impl/run/validation.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "impl/ops/determinism.hpp"
#include "impl/run/trainer.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::cuda_validation_test {
namespace {

constexpr std::int64_t tokens = 8, sequences = 4;

class SomeIds final : public data::SampleSource {
 public:
  explicit SomeIds(std::int64_t vocab) : vocab_(static_cast<std::uint64_t>(vocab)) {}
  std::int64_t samples() const override { return 41; }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    const spec::random::Stream stream(5, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(stream.below(t, vocab_));
  }
  std::string description() const override { return "some ids"; }

 private:
  std::uint64_t vocab_;
};

spec::RunConfig config_of(Dtype dtype, bool captured) {
  spec::RunConfig config;
  config.sequences = sequences, config.micro = 2, config.sequence_length = tokens;
  config.steps = 10, config.warmup_steps = 1, config.decay_steps = 2, config.dtype = dtype;
  config.eval_share = 0.5, config.eval_sequences = 19, config.cuda_graph = captured;
  config.attention = spec::AttentionBackend::math;
  return config;
}

/// Losses of steps, the last weights, and losses of validations, one after every second step where asked for.
struct Trained {
  std::vector<double> losses, validations;
  at::Tensor weights;
};

Trained trained(const spec::RunConfig& config, const spec::ModelSpec& model, at::Device device,
                bool validated) {
  set_deterministic(true);
  const auto alone = make_self_communicator();
  const auto source = std::make_shared<SomeIds>(model.vocab);
  const data::ValidationSet set(config, model, source);
  Trainer trainer(config, model, spec::batch_of(sequences, 2, 1), device, source, *alone);
  trainer.initialise();
  trainer.start_after(0);
  Trained out;
  for (int step = 0; step < 8; ++step) {
    out.losses.push_back(trainer.step(false).value().result.cross_entropy);
    if (validated && step % 2 == 1) out.validations.push_back(trainer.validate(set).sum);
  }
  out.weights = trainer.buffers().weights.cpu().clone();
  set_deterministic(false);
  return out;
}

TEST(ValidationCuda, TrainingIsWhatItIsWithoutItCapturedOrNot) {
  ASSAY_NEEDS_GPU();
  const at::Device gpu(at::kCUDA, 0);
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16})
    for (const bool captured : {false, true})
      for (const std::uint64_t seed : {3, 5, 6}) {
        const spec::ModelSpec model = tests::tiny_model(seed);
        const auto config = config_of(dtype, captured);
        const Trained with = trained(config, model, gpu, true), without = trained(config, model, gpu, false);
        EXPECT_EQ(with.losses, without.losses) << tests::describe(model) << captured;
        EXPECT_TRUE(at::equal(with.weights, without.weights)) << tests::describe(model) << captured;
        EXPECT_EQ(with.validations.size(), 4u);
      }
}

TEST(ValidationCuda, TheNumberIsTheCpus) {
  ASSAY_NEEDS_GPU();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const spec::ModelSpec model = seed % 4 == 3 ? tests::sparse_model(seed) : tests::tiny_model(seed);
    const auto gpu = trained(config_of(Dtype::f64, false), model, at::Device(at::kCUDA, 0), true),
               cpu = trained(config_of(Dtype::f64, false), model, at::kCPU, true);
    ASSERT_EQ(gpu.validations.size(), cpu.validations.size());
    for (std::size_t i = 0; i < cpu.validations.size(); ++i)
      EXPECT_NEAR(gpu.validations[i], cpu.validations[i], 1e-9 * cpu.validations[i])
          << tests::describe(model) << " after " << 2 * i + 2 << " steps";
  }
}

}  // namespace
}  // namespace assay::impl::run::cuda_validation_test
