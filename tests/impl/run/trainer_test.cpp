// labels: parity property
// ranks: 1 2 4
// The trainer from its samples to its weights, over Gloo, against the reference on the whole batch: the loss
// is divided by the count of valid tokens of all ranks and micro-batches, which differ.
#include "impl/run/trainer.hpp"

#include <gtest/gtest.h>

#include "impl/comm/launch.hpp"
#include "reference/train_step.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/random/philox.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::trainer_test {
namespace {

using tests::Allowed;
using tests::Values;

constexpr std::int64_t tokens = 5, samples_in_all = 7, sequences = 4;

/// Drawn ids; the last target of every other sample does not count.
class UnevenSamples final : public data::SampleSource {
 public:
  explicit UnevenSamples(std::int64_t vocab, std::vector<std::int64_t> of_sources = {samples_in_all})
      : vocab_(static_cast<std::uint64_t>(vocab)), of_sources_(std::move(of_sources)) {}
  std::int64_t samples() const override { return samples_in_all; }
  std::vector<std::int64_t> samples_of_sources() const override { return of_sources_; }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    const spec::random::Stream stream(3, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(stream.below(t, vocab_));
    if (sample % 2 == 0) ids.back() = static_cast<std::int32_t>(reference::Batch::ignored);
  }
  std::string description() const override { return "uneven samples"; }

 private:
  std::uint64_t vocab_;
  std::vector<std::int64_t> of_sources_;
};

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

spec::RunConfig config_of(std::uint64_t seed) {
  spec::RunConfig config;
  config.sequences = sequences, config.micro = 1, config.sequence_length = tokens;
  config.steps = 6, config.warmup_steps = 3, config.decay_steps = 2;
  config.dtype = Dtype::f64, config.seed = seed, config.z_loss = 1e-3;
  return config;
}

/// The samples of a step, all ranks', as one batch.
reference::Batch whole_batch(const data::SampleSource& source, const std::vector<std::int64_t>& of_step) {
  reference::Batch batch;
  batch.B = static_cast<std::int64_t>(of_step.size()), batch.T = tokens;
  std::vector<std::int32_t> ids(tokens + 1);
  for (const std::int64_t sample : of_step) {
    source.read(sample, ids);
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end() - 1);
    batch.targets.insert(batch.targets.end(), ids.begin() + 1, ids.end());
    for (std::int64_t t = 0; t < tokens; ++t) batch.positions.push_back(t);
  }
  return batch;
}

/// Of whole weights, or of shares, which are gathered. Collective.
void expect_parameters_close(Trainer& trainer, const reference::Parameters<double>& expected) {
  const ParameterBuffers& buffers = trainer.buffers();
  const at::Tensor whole = at::zeros({buffers.inventory.flat_size}, buffers.master.options());
  for (std::int64_t b = 0; b < buffers.inventory.blocks; ++b) {
    const auto range = buffers.inventory.block_range(b);
    Communicator& shard = trainer.groups().sets()[0].state;
    shard.wait(shard.begin_all_gather(owned(buffers, buffers.master, b).clone(),
                                      whole.narrow(0, range.begin, range.end - range.begin)));
  }
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const auto& wanted = expected.at(parameter.name);
    EXPECT_TRUE(tests::close(tests::values(whole, parameter),
                             Values{wanted.shape(), {wanted.flat().begin(), wanted.flat().end()}},
                             Allowed::relative(1e-11)))
        << parameter.name;
  }
}

/// What the same step runs where one rank has all of it. It depends on shapes alone.
double executed_on_one_rank(const spec::ModelSpec& model) {
  const auto alone = make_self_communicator();
  Trainer trainer(config_of(0), model, spec::batch_of(sequences, 1, 1), at::kCPU,
                  std::make_shared<UnevenSamples>(model.vocab), *alone);
  trainer.initialise();
  trainer.start_after(0);
  return trainer.step(false).value().executed_flops;
}

/// A rank whose loader goes through the samples in an order of its own.
TEST(TrainerImpl, ARankWithAnotherDataOrderStopsAllRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank has no other to differ from";
  const spec::ModelSpec model = tests::tiny_model(1);
  spec::RunConfig config = config_of(1);
  if (world().rank() == 1) config.seed = 2;
  Trainer trainer(config, model, spec::batch_of(sequences, 1, world().size()), at::kCPU,
                  std::make_shared<UnevenSamples>(model.vocab), world());
  trainer.initialise();
  trainer.start_after(0);
  try {
    trainer.step(false);
    FAIL() << "went on";
  } catch (const AgreedError& error) {
    EXPECT_NE(std::string(error.what()).find("different orders"), std::string::npos) << error.what();
  }
}

/// A bit that flips on one rank.
TEST(TrainerImpl, ACopyOfTheWeightsThatDiffersIsNamed) {
  if (world().size() < 4) GTEST_SKIP() << "of two copies none is the odd one";
  const spec::ModelSpec model = tests::tiny_model(1);
  spec::RunConfig config = config_of(1);
  config.check_replicas_every = 1;
  Trainer trainer(config, model, spec::batch_of(sequences, 1, world().size()), at::kCPU,
                  std::make_shared<UnevenSamples>(model.vocab), world());
  trainer.initialise();
  trainer.start_after(0);
  EXPECT_NE(trainer.step(false)->weights_hash, "");
  if (world().rank() == 2) {
    const at::Tensor bits = trainer.buffers().weights.view(at::kLong);
    bits[0] = bits[0].bitwise_xor(1);
  }
  try {
    trainer.step(false);
    FAIL() << "went on";
  } catch (const AgreedError& error) {
    EXPECT_NE(std::string(error.what()).find("the weights of rank 2 are not"), std::string::npos)
        << error.what();
  }
}

/// Each source's loss is that of a step on its sequences alone, and its epochs are counted.
void expect_sources(const StepReport& report, const spec::data::SampleOrder& order,
                    const data::SampleSource& source, const reference::TrainState& state,
                    const spec::ModelSpec& model) {
  ASSERT_EQ(report.sources.size(), order.of_sources.size());
  for (std::size_t k = 0; k < order.of_sources.size(); ++k) {
    std::vector<std::int64_t> own;
    for (const std::int64_t sample : spec::data::step_samples(order, report.step))
      if (spec::data::source_of(order, sample) == k) own.push_back(sample);
    EXPECT_EQ(report.sources[k].tokens, std::ssize(own) * tokens);
    const auto read = spec::data::read_before(order, report.step + 1)[k];
    EXPECT_EQ(report.sources[k].epochs,
              static_cast<double>(read) / static_cast<double>(order.of_sources[k].samples));
    if (own.empty()) {
      EXPECT_EQ(report.sources[k].valid_tokens, 0);
      EXPECT_EQ(report.result.source_losses[k], 0);
      continue;
    }
    const reference::Batch batch = whole_batch(source, own);
    reference::TrainState copy = state;
    const double loss = reference::train_step(copy, model, {batch}, {}, 0).cross_entropy;
    EXPECT_EQ(report.sources[k].valid_tokens, batch.valid_tokens());
    EXPECT_NEAR(report.result.source_losses[k] / static_cast<double>(batch.valid_tokens()), loss,
                1e-11 * loss);
  }
}

TEST(TrainerImpl, StepsOverAnyRanksAndLayoutsAreThoseOfTheReference) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const spec::ModelSpec model = tests::tiny_model(seed % 4);
    spec::RunConfig config = config_of(seed);
    config.data_parallel = static_cast<spec::DataParallel>(seed % 4);
    config.check_replicas_every = 2;
    auto source = std::make_shared<UnevenSamples>(model.vocab);
    if (seed >= 4) {
      source = std::make_shared<UnevenSamples>(model.vocab, std::vector<std::int64_t>{2, 4, 1});
      config.mixture = {{"web", 500'000, 1}, {"code", 400'000, 1}, {"rare", 100'000, 1}};
    }
    if (seed % 2 == 1) config.ramp = {{8, 2}, {4, 1}, {12, 2}};
    const spec::data::SampleOrder order =
        data::sample_order(loader_plan(config, spec::batch_of(sequences, 1, world().size()), 0, 0), *source);
    Trainer trainer(config, model, spec::batch_of(sequences, 1, world().size()), at::kCPU, source, world());
    trainer.initialise();
    trainer.start_after(0);
    reference::TrainState state = reference::initial_state(model, seed);
    for (std::int64_t step = 0; step < config.steps; ++step) {
      if (step == 4) {
        const bool one_asks = world().rank() == world().size() - 1;
        EXPECT_FALSE(trainer.step(one_asks)) << "a stop is known to every rank";
        EXPECT_EQ(trainer.steps_done(), step);
        expect_parameters_close(trainer, state.parameters);
        trainer.start_after(step);
      }
      const StepReport report = trainer.step(false).value();
      const auto of_step = spec::data::step_samples(order, step);
      const reference::Batch batch = whole_batch(*source, of_step);
      const double rate = spec::learning_rate(schedule_of(config), step);
      expect_sources(report, order, *source, state, model);
      const auto expected = reference::train_step(state, model, {batch}, {.z_loss = config.z_loss}, rate);
      EXPECT_EQ(report.valid_tokens, batch.valid_tokens());
      const std::int64_t of_this_step = spec::sequences_of(order.batch(), step);
      EXPECT_EQ(report.tokens, of_this_step * tokens);
      EXPECT_EQ(trainer.tokens_at(trainer.steps_done()),
                spec::sequences_before(order.batch(), step + 1) * tokens);
      EXPECT_EQ(report.learning_rate, rate);
      EXPECT_EQ(report.sample_hash, spec::data::sample_hash(of_step));
      EXPECT_EQ(report.executed_flops,
                executed_on_one_rank(model) / sequences * static_cast<double>(of_this_step))
          << "FLOPs of all ranks";
      EXPECT_EQ(report.weights_hash.empty(), step % 2 == 0);
      EXPECT_NEAR(report.result.cross_entropy, expected.cross_entropy, 1e-11 * expected.cross_entropy);
      EXPECT_NEAR(report.result.z_loss, expected.z_loss, 1e-11 * expected.z_loss);
      expect_parameters_close(trainer, state.parameters);
      ASSERT_FALSE(HasFailure()) << tests::describe(model) << " seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace assay::impl::run::trainer_test
