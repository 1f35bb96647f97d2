// labels: unit property fault
// ranks: 1 2 4
// Steps that are not finite, in every layout: one that is skipped leaves weights, moments and router biases
// as they were, bit for bit, and the run goes on as one that never had it. What ranks tell each other before
// a step: a save that rank 0 asks for, and data that one of them cannot read.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "impl/comm/launch.hpp"
#include "impl/run/step_event.hpp"
#include "impl/run/trainer.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::skipped_steps_test {
namespace {

constexpr std::int64_t tokens = 5;

class DrawnSamples final : public data::SampleSource {
 public:
  /// Sample `unread` cannot be read by this rank.
  explicit DrawnSamples(std::int64_t vocab, std::set<std::int64_t> unread = {})
      : vocab_(static_cast<std::uint64_t>(vocab)), unread_(std::move(unread)) {}
  std::int64_t samples() const override { return 40; }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    if (unread_.contains(sample)) throw UserError(ExitCode::bad_data, "tokens.bin: a planted fault");
    const spec::random::Stream stream(5, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(stream.below(t, vocab_));
  }
  std::string description() const override { return "drawn samples"; }

 private:
  std::uint64_t vocab_;
  std::set<std::int64_t> unread_;
};

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

spec::RunConfig config_of(spec::DataParallel layout) {
  spec::RunConfig config;
  config.sequences = 4, config.micro = 1, config.sequence_length = tokens;
  config.steps = 8, config.warmup_steps = 1, config.decay_steps = 2;
  config.dtype = Dtype::f64, config.seed = 3, config.data_parallel = layout;
  config.on_non_finite = spec::OnNonFinite::skip;
  return config;
}

std::vector<at::Tensor> state_of(const ParameterBuffers& buffers) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& part :
       {buffers.weights, buffers.master, buffers.moment1, buffers.moment2, buffers.router_biases})
    if (part.defined()) all.push_back(part.clone());
  return all;
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << what << ", part " << i;
}

/// A step during which the last rank's weights of the last block are NaN. With zero1 all gather them; of
/// shards, the first blocks of the next step are gathered before they are put back.
std::optional<StepReport> bad_step(Trainer& trainer) {
  const ParameterBuffers& buffers = trainer.buffers();
  const at::Tensor place = owned(buffers, buffers.weights, buffers.inventory.blocks - 1);
  const at::Tensor before = buffers.weights.clone();
  place.fill_(std::numeric_limits<double>::quiet_NaN());
  std::optional<StepReport> report;
  try {
    report = trainer.step(false);
  } catch (...) {
    trainer.buffers();
    buffers.weights.copy_(before);
    throw;
  }
  trainer.buffers();  // gathered, or it would come behind what is put back
  buffers.weights.copy_(before);
  return report;
}

TEST(SkippedStepsImpl, ASkippedStepChangesNothingInAnyLayout) {
  for (const auto layout : {spec::DataParallel::replicate, spec::DataParallel::zero1,
                            spec::DataParallel::shard, spec::DataParallel::hybrid})
    for (const bool routed : {false, true}) {
      const spec::ModelSpec model = routed ? tests::routed_model(0) : tests::tiny_model(1);
      const spec::RunConfig config = config_of(layout);
      const spec::Batch batch = spec::batch_of(4, 1, world().size());
      const auto source = std::make_shared<DrawnSamples>(model.vocab);
      Trainer skips(config, model, batch, at::kCPU, source, world());
      Trainer never(config, model, batch, at::kCPU, source, world());
      for (Trainer* each : {&skips, &never}) each->initialise(), each->start_after(0);
      for (int step = 0; step < 2; ++step) skips.step(false), never.step(false);

      const auto before = state_of(skips.buffers());
      const StepReport report = bad_step(skips).value();
      expect_same(state_of(skips.buffers()), before, "the skipped step");
      EXPECT_NE(report.not_finite.find("rank 0:"), std::string::npos) << report.not_finite;
      EXPECT_EQ(skips.steps_done(), 3);
      EXPECT_EQ(skips.skipped(), 1);
      const auto event = skipped_event_of(report, skips.skipped(), config.max_skipped);
      EXPECT_EQ(event.step, 3);
      EXPECT_EQ(event.tokens, 4 * tokens);

      never.start_after(3, 1);
      for (int step = 0; step < 2; ++step) {
        const StepReport a = skips.step(false).value(), b = never.step(false).value();
        EXPECT_EQ(a.not_finite, "");
        EXPECT_EQ(a.result.cross_entropy, b.result.cross_entropy);
        EXPECT_EQ(a.sample_hash, b.sample_hash);
      }
      expect_same(state_of(skips.buffers()), state_of(never.buffers()), "the steps behind it");
      ASSERT_FALSE(HasFailure()) << tests::describe(model) << ", layout " << static_cast<int>(layout);
    }
}

TEST(SkippedStepsImpl, OneMoreThanAllowedAndAnyWhereNoneIsSkippedEndsTheRun) {
  const spec::ModelSpec model = tests::tiny_model(1);
  for (const bool skip : {true, false}) {
    spec::RunConfig config = config_of(spec::DataParallel::replicate);
    if (!skip) config.on_non_finite = spec::OnNonFinite::stop;
    config.max_skipped = 2;
    Trainer trainer(config, model, spec::batch_of(4, 1, world().size()), at::kCPU,
                    std::make_shared<DrawnSamples>(model.vocab), world());
    trainer.initialise();
    trainer.start_after(3, 1);  // one was skipped before this start
    if (skip) {
      EXPECT_NE(bad_step(trainer)->not_finite, "");
    }
    const std::int64_t done = trainer.steps_done();
    const auto before = state_of(trainer.buffers());
    try {
      bad_step(trainer);
      FAIL() << "went on";
    } catch (const NonFiniteError& error) {
      EXPECT_EQ(std::string(error.what()).find("train.max_skipped = 2") != std::string::npos, skip)
          << error.what();
    }
    EXPECT_EQ(trainer.steps_done(), done);
    expect_same(state_of(trainer.buffers()), before, "the step that ended it");
  }
}

TEST(SkippedStepsImpl, RankZeroAloneAsksForASave) {
  const spec::ModelSpec model = tests::tiny_model(1);
  Trainer trainer(config_of(spec::DataParallel::replicate), model, spec::batch_of(4, 1, world().size()),
                  at::kCPU, std::make_shared<DrawnSamples>(model.vocab), world());
  trainer.initialise();
  trainer.start_after(0);
  EXPECT_FALSE(trainer.step(false)->save);
  EXPECT_TRUE(trainer.step(false, world().rank() == 0)->save);
  EXPECT_FALSE(trainer.step(false, world().rank() != 0)->save);
}

TEST(SkippedStepsImpl, DataThatOneRankCannotReadEndTheStepOnAllRanksAndChangeNothing) {
  const spec::ModelSpec model = tests::tiny_model(1);
  const spec::RunConfig config = config_of(spec::DataParallel::replicate);
  std::set<std::int64_t> unread;
  if (world().rank() == world().size() - 1)
    for (std::int64_t sample = 0; sample < 40; ++sample) unread.insert(sample);
  Trainer trainer(config, model, spec::batch_of(4, 1, world().size()), at::kCPU,
                  std::make_shared<DrawnSamples>(model.vocab, unread), world());
  trainer.initialise();
  trainer.start_after(0);
  const auto before = state_of(trainer.buffers());
  try {
    trainer.step(false);
    FAIL() << "went on";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("a planted fault"), std::string::npos) << error.what();
    EXPECT_EQ(dynamic_cast<const AgreedError*>(&error) != nullptr, world().size() > 1);
  }
  expect_same(state_of(trainer.buffers()), before, "the step without data");
}

}  // namespace
}  // namespace assay::impl::run::skipped_steps_test
