// labels: parity property
// ranks: 1 2 4
// Validation over Gloo: the reference's loss; the same bits in every layout, on any ranks and micro-batches;
// and training as if there were none.
#include "impl/run/validation.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "impl/comm/launch.hpp"
#include "impl/run/trainer.hpp"
#include "reference/train_step.hpp"
#include "spec/config/check.hpp"
#include "spec/random/philox.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::validation_test {
namespace {

constexpr std::int64_t tokens = 6, sequences = 8;

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

/// Drawn ids; the last target of every third sample does not count.
class DrawnSamples final : public data::SampleSource {
 public:
  DrawnSamples(std::int64_t vocab, std::int64_t samples)
      : vocab_(static_cast<std::uint64_t>(vocab)), samples_(samples) {}
  std::int64_t samples() const override { return samples_; }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    const spec::random::Stream stream(3, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(stream.below(t, vocab_));
    if (sample % 3 == 0) ids.back() = static_cast<std::int32_t>(reference::Batch::ignored);
  }
  std::string description() const override { return "drawn samples"; }

 private:
  std::uint64_t vocab_;
  std::int64_t samples_;
};

/// 41 samples, of which half are held out and 19 of these evaluated, 4 in a forward pass: no multiple of any
/// ranks or batches.
spec::RunConfig config_of(std::uint64_t seed) {
  spec::RunConfig config;
  config.sequences = sequences, config.micro = 1, config.sequence_length = tokens;
  config.steps = 6, config.warmup_steps = 3, config.decay_steps = 2;
  config.dtype = Dtype::f64, config.seed = seed, config.z_loss = 1e-3;
  config.eval_share = 0.5, config.eval_sequences = 19;
  return config;
}
constexpr std::int64_t samples = 41;

/// A trainer, its data and its validation set.
struct Case {
  std::shared_ptr<const data::SampleSource> source;
  data::ValidationSet set;
  Trainer trainer;

  Case(const spec::RunConfig& config, const spec::ModelSpec& model, Communicator& communicator,
       std::int64_t pass = 4 * tokens)
      : source(std::make_shared<DrawnSamples>(model.vocab, samples)),
        set(config, model, source, pass),
        trainer(config, model,
                spec::batch_of(config.sequences, config.micro, spec::data_ranks(config, communicator.size())),
                at::kCPU, source, communicator) {
    trainer.initialise();
    trainer.start_after(0);
  }
};

/// Everything that is evaluated, as one batch of the reference.
reference::Batch whole(const Case& c, std::int64_t end_of_document) {
  reference::Batch batch;
  batch.B = c.set.sequences(), batch.T = tokens;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < batch.B; ++i) numbers.push_back(c.set.sample(i));
  const data::MicroBatch read = data::read_micro_batch(
      *c.source, numbers, end_of_document >= 0 ? std::optional(end_of_document) : std::nullopt);
  batch.ids = read.inputs, batch.targets = read.targets;
  for (std::int64_t n = 0; n < batch.B * batch.T; ++n) batch.positions.push_back(n % tokens);
  if (end_of_document >= 0) {
    batch.positions.assign(read.positions.begin(), read.positions.end());
    batch.documents.assign(read.documents.begin(), read.documents.end());
  }
  return batch;
}

/// The layouts that these ranks may have.
std::vector<spec::RunConfig> layouts(const spec::RunConfig& config) {
  std::vector<spec::RunConfig> all;
  for (const auto data : {spec::DataParallel::replicate, spec::DataParallel::zero1, spec::DataParallel::shard,
                          spec::DataParallel::hybrid}) {
    all.push_back(config);
    all.back().data_parallel = data;
    if (data == spec::DataParallel::hybrid) all.back().shard_ranks = (world().size() + 1) / 2;
  }
  return all;
}

spec::ModelSpec model_of(std::uint64_t seed) {
  spec::ModelSpec model = seed % 4 == 3 ? tests::sparse_model(seed) : tests::tiny_model(seed);
  model.context = std::max<std::int64_t>(model.context, tokens);
  return model;
}

// Over all models, with and without documents; experts add no loss of theirs, and z-loss is left out.
TEST(ValidationImpl, TheLossIsTheReferences) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const spec::ModelSpec model = model_of(seed);
    spec::RunConfig config = layouts(config_of(seed))[seed / 4 % 4];
    if (seed % 2 == 1) config.end_of_document = 0;
    Case c(config, model, world());
    if (seed % 3 == 0) c.trainer.model().limit_chunks(7 * model.vocab);  // of the 24 tokens of a pass
    const ValidationLoss loss = c.trainer.validate(c.set);
    const reference::Batch batch = whole(c, config.end_of_document);
    const auto expected = reference::step_gradients(reference::initial_state(model, seed).parameters, model,
                                                    {batch}, config.z_loss);
    EXPECT_EQ(loss.valid_tokens, batch.valid_tokens());
    EXPECT_LT(loss.valid_tokens, batch.B * batch.T) << "some targets do not count";
    const double mean = loss.sum / static_cast<double>(loss.valid_tokens);
    EXPECT_NEAR(mean, expected.cross_entropy, 1e-12 * expected.cross_entropy)
        << tests::describe(model) << " seed " << seed;
    const auto event = event_of(loss, c.set);
    EXPECT_EQ(event.loss, mean);
    EXPECT_EQ(event.perplexity, std::exp(mean));
    EXPECT_EQ(event.sequences, 19);
    EXPECT_FALSE(event.bits_per_byte) << "nobody knows how many bytes these tokens are";
  }
}

// In the precision of training: linears in FP8 stay so, with scales of the forward pass's tensors.
TEST(ValidationImpl, InFp8TheLossIsTheReferencesToo) {
  for (const auto data : {spec::DataParallel::replicate, spec::DataParallel::shard}) {
    spec::ModelSpec model;
    model.name = "fp8", model.vocab = 211, model.width = 32, model.layers = 2, model.heads = 2,
    model.kv_heads = 1;
    model.head_dim = 16, model.ffn = 48, model.context = 16, model.init_std = 0.2;
    spec::RunConfig config = config_of(9);
    config.data_parallel = data, config.linear = spec::quantise::Recipe::fp8_tensor,
    config.eval_sequences = 16;
    // Scales are those of a forward pass: here it holds all that is evaluated, as the reference's batch does.
    Case c(config, model, world(), 16 * tokens);
    const ValidationLoss loss = c.trainer.validate(c.set);
    const auto parameters = reference::initial_state(model, 9).parameters;
    const reference::Batch batch = whole(c, -1);
    reference::Recipes recipes;
    recipes.of_block.assign(2, spec::quantise::Recipe::fp8_tensor);
    const double mean = loss.sum / static_cast<double>(loss.valid_tokens),
                 expected = reference::step_gradients(parameters, model, {batch}, 0, recipes).cross_entropy,
                 unquantised = reference::step_gradients(parameters, model, {batch}, 0).cross_entropy;
    EXPECT_NEAR(mean, expected, 1e-11 * expected) << spec::to_string(data);
    EXPECT_GT(std::abs(expected - unquantised), 1e-6 * expected) << "FP8 is not seen in the loss";
  }
}

TEST(ValidationImpl, EveryLayoutAndMicroBatchGivesTheSameBits) {
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    const spec::ModelSpec model = model_of(seed);
    const auto alone = make_self_communicator();
    Case one(config_of(seed), model, *alone);
    const double wanted = one.trainer.validate(one.set).sum;
    EXPECT_GT(wanted, 0);
    for (spec::RunConfig config : layouts(config_of(seed))) {
      for (const std::int64_t micro : {1, 2}) {
        config.micro = micro;
        Case c(config, model, world());
        EXPECT_EQ(c.trainer.validate(c.set).sum, wanted)
            << spec::to_string(config.data_parallel) << " micro " << micro << ", " << tests::describe(model)
            << " seed " << seed;
      }
    }
  }
}

// Tensor ranks split the sums of GEMMs: the same number to rounding.
TEST(ValidationImpl, TensorRanksGiveTheSameLoss) {
  const std::int64_t t = world().size();
  for (std::uint64_t seed = 40; seed < 44; ++seed) {
    spec::ModelSpec model = tests::tiny_model(seed);
    model.kv_heads = t, model.heads = t * static_cast<std::int64_t>(1 + seed % 2), model.ffn = 3 * t;
    model.vocab = std::max(model.vocab, t + 1), model.context = std::max<std::int64_t>(model.context, tokens);
    model.qk_norm_across_heads = false;
    const auto alone = make_self_communicator();
    Case one(config_of(seed), model, *alone);
    const ValidationLoss wanted = one.trainer.validate(one.set);
    spec::RunConfig config = config_of(seed);
    config.tensor_ranks = t, config.micro = 4;
    Case c(config, model, world());
    const ValidationLoss loss = c.trainer.validate(c.set);
    EXPECT_EQ(loss.valid_tokens, wanted.valid_tokens);
    EXPECT_NEAR(loss.sum, wanted.sum, 1e-12 * wanted.sum) << tests::describe(model) << " seed " << seed;
  }
}

// They route what rows they have to experts, parts of a sequence as well: two ranks the halves of 3
// sequences.
TEST(ValidationImpl, TensorRanksBesideExpertsGiveTheSameLoss) {
  const std::int64_t t = world().size();
  for (std::uint64_t seed = 40; seed < 44; ++seed) {
    spec::ModelSpec model = tests::routed_model(seed);
    model.kv_heads = t, model.heads = t * static_cast<std::int64_t>(1 + seed % 2), model.ffn = 3 * t;
    model.vocab = std::max(model.vocab, t + 1), model.context = std::max<std::int64_t>(model.context, tokens);
    model.qk_norm_across_heads = false;
    model.experts->count = t * model.experts->groups * 2;
    model.experts->active = std::min(model.experts->active, model.experts->count / model.experts->groups);
    spec::RunConfig config = config_of(seed);
    config.eval_sequences = 3, config.micro = 4;
    config.capacity = seed % 2 == 0 ? 0 : 1;
    const auto alone = make_self_communicator();
    Case one(config, model, *alone);
    const ValidationLoss wanted = one.trainer.validate(one.set);
    config.tensor_ranks = t;
    for (const std::int64_t expert : {std::int64_t{1}, t}) {
      config.expert_ranks = expert;
      Case c(config, model, world());
      EXPECT_EQ(c.set.batch(), t < 4 ? 3 : 4);
      const ValidationLoss loss = c.trainer.validate(c.set);
      EXPECT_EQ(loss.valid_tokens, wanted.valid_tokens);
      EXPECT_NEAR(loss.sum, wanted.sum, 1e-12 * wanted.sum)
          << tests::describe(model) << " seed " << seed << ", experts over " << expert;
    }
  }
}

std::string bits_of(const at::Tensor& tensor) {
  const at::Tensor here = tensor.cpu().contiguous();
  return {static_cast<const char*>(here.const_data_ptr()), here.nbytes()};
}

// In every layout, of models with experts and linears in FP8 too: the same losses, norms and weights, bit for
// bit.
TEST(ValidationImpl, TrainingIsWhatItIsWithoutValidation) {
  for (std::uint64_t seed = 60; seed < 68; ++seed) {
    spec::ModelSpec model = model_of(seed);
    spec::RunConfig config = layouts(config_of(seed))[seed % 4];
    config.dtype = seed % 2 == 0 ? Dtype::f64 : Dtype::f32, config.micro = 2;
    if (seed >= 64 && !model.experts) {
      model.width = 32, model.head_dim = 16, model.heads = 2, model.kv_heads = 1, model.ffn = 48;
      config.linear = spec::quantise::Recipe::fp8_tensor;
      config.micro = 8, config.sequences = 8 * world().size();  // 48 tokens
      if (config.data_parallel < spec::DataParallel::shard) config.linear_weights = spec::TwinsMade::step;
    }
    Case with(config, model, world()), without(config, model, world());
    EXPECT_EQ(with.set.batch(), config.linear == spec::quantise::Recipe::none ? 4 : 8) << "FP8 asks for 16 n";
    for (int step = 0; step < 4; ++step) {
      if (step != 1) {
        EXPECT_EQ(with.trainer.validate(with.set).sum, with.trainer.validate(with.set).sum);
      }
      const StepReport a = with.trainer.step(false).value(), b = without.trainer.step(false).value();
      const std::string where =
          tests::describe(model) + " seed " + std::to_string(seed) + " step " + std::to_string(step);
      EXPECT_EQ(a.result.cross_entropy, b.result.cross_entropy) << where;
      EXPECT_EQ(a.result.gradient_norm, b.result.gradient_norm) << where;
      EXPECT_EQ(a.sample_hash, b.sample_hash) << where;
      EXPECT_EQ(a.executed_flops, b.executed_flops) << where;
      if (a.result.routing) {
        EXPECT_EQ(a.result.routing->balance, b.result.routing->balance) << where;
      }
      for (at::Tensor ParameterBuffers::*buffer : {&ParameterBuffers::weights, &ParameterBuffers::master,
                                                   &ParameterBuffers::moment1, &ParameterBuffers::moment2})
        EXPECT_EQ(bits_of(with.trainer.buffers().*buffer), bits_of(without.trainer.buffers().*buffer))
            << where;
    }
  }
}

// The weights of the step that was done last, in layouts that gather them while the next begins.
TEST(ValidationImpl, ItReadsTheWeightsAsTheyAreAfterTheStep) {
  for (const spec::RunConfig& config : layouts(config_of(80))) {
    Case c(config, model_of(80), world());
    const double before = c.trainer.validate(c.set).sum;
    c.trainer.step(false);
    const double after = c.trainer.validate(c.set).sum;
    EXPECT_NE(before, after) << spec::to_string(config.data_parallel);
    Case again(config, model_of(80), world());
    again.trainer.step(false);
    EXPECT_EQ(again.trainer.validate(again.set).sum, after) << spec::to_string(config.data_parallel);
  }
}

TEST(ValidationImpl, TheScanIsOneHashOnEveryRankAndRefusesASetWithoutAValidTarget) {
  const spec::ModelSpec model = model_of(1);
  spec::RunConfig config = config_of(1);
  const auto source = std::make_shared<DrawnSamples>(model.vocab, samples);
  const data::ValidationSet set(config, model, source);
  const std::string hash = scan_validation(set, 1, world());
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(scan_validation(set, 1, *make_self_communicator()), hash);
  EXPECT_EQ(scan_validation(set, world().size(), world()), hash);

  config.sequence_length = 1;
  class NoTarget final : public data::SampleSource {
   public:
    std::int64_t samples() const override { return 9; }
    std::int64_t sequence_length() const override { return 1; }
    void read(std::int64_t, std::span<std::int32_t> ids) const override {
      ids[0] = 1, ids[1] = static_cast<std::int32_t>(reference::Batch::ignored);
    }
    std::string description() const override { return "no target"; }
  };
  const data::ValidationSet none(config, model, std::make_shared<NoTarget>());
  try {
    scan_validation(none, 1, world());
    FAIL() << "went on";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("has no valid target in any sequence"), std::string::npos)
        << error.what();
  }
}

/// Samples that one rank cannot read once the run is under way.
class FailingSamples final : public data::SampleSource {
 public:
  FailingSamples(std::int64_t vocab, bool fails) : whole_(vocab, validation_test::samples), fails_(fails) {}
  std::int64_t samples() const override { return whole_.samples(); }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    if (fails_ && under_way) throw UserError(ExitCode::bad_data, "val.bin was overwritten");
    whole_.read(sample, ids);
  }
  std::string description() const override { return "failing samples"; }
  bool under_way = false;

 private:
  DrawnSamples whole_;
  bool fails_;
};

/// The others would wait for that rank in the sum of losses.
TEST(ValidationImpl, WhatOneRankCannotReadAllRanksRefuse) {
  const spec::ModelSpec model = model_of(1);
  std::atomic<int> refused = 0;
  tests::on_thread_ranks(3, [&](Communicator& communicator) {
    spec::RunConfig config = config_of(1);
    config.sequences = 9;
    const auto source = std::make_shared<FailingSamples>(model.vocab, communicator.rank() == 1);
    const data::ValidationSet set(config, model, source, 4 * tokens);
    Trainer trainer(config, model, spec::batch_of(9, 1, 3), at::kCPU, source, communicator);
    trainer.initialise();
    source->under_way = true;
    try {
      trainer.validate(set);
    } catch (const AgreedError& error) {
      refused += error.code() == ExitCode::bad_data &&
                 std::string(error.what()).find("val.bin was overwritten") != std::string::npos;
    }
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace assay::impl::run::validation_test
