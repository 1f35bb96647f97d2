// labels: property
// ranks: 1 2
// The executed FLOPs that the trainer reports of each step, over all ranks, against the spec's count.
#include "spec/flops/executed.hpp"

#include <gtest/gtest.h>

#include <set>

#include "impl/comm/launch.hpp"
#include "impl/data/batch.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/run/trainer.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::executed_flops_test {
namespace {

constexpr std::int64_t tokens = 45, sequences = 4, steps = 4;

class DrawnSamples final : public data::SampleSource {
 public:
  std::int64_t samples() const override { return 64; }
  std::int64_t sequence_length() const override { return tokens; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    const spec::random::Stream stream(5, spec::random::Site::test, static_cast<std::uint32_t>(sample));
    for (std::size_t t = 0; t < ids.size(); ++t)
      ids[t] = stream.below(2 * t, 20) == 0 ? 0 : 1 + static_cast<std::int32_t>(stream.below(2 * t + 1, 2));
  }
  std::string description() const override { return "drawn samples"; }
};

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

/// What the spec says of a step's samples, of all ranks.
Count stated(const spec::ModelSpec& model, const spec::RunConfig& config, std::int64_t step) {
  const data::LoaderPlan plan = loader_plan(config, spec::batch_of(sequences, 1, 1), 0, 0);
  const auto samples = spec::data::step_samples({config.seed, DrawnSamples().samples(), sequences}, step);
  const data::MicroBatch batch = data::read_micro_batch(DrawnSamples(), samples, plan.end_of_document);
  Count sum;
  for (std::int64_t b = 0; b < batch.B; ++b) {
    std::vector<std::int64_t> lengths = {1};
    for (std::int64_t n = b * tokens + 1; n < (b + 1) * tokens; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const bool same = batch.documents.empty() || batch.documents[at] == batch.documents[at - 1];
      same ? void(++lengths.back()) : lengths.push_back(1);
    }
    sum += spec::executed_flops(model, lengths,
                                {.kind = spec::AttentionKernel::Kind::tiles,
                                 .tile_rows = attention::cpu::tile_rows,
                                 .column_block = 8})
               .executed();
  }
  return sum;
}

/// Trains `steps` steps and compares each; returns the different counts.
std::set<double> compare(std::int64_t end_of_document) {
  const spec::ModelSpec model = tests::corner_models().front();
  spec::RunConfig config;
  config.sequences = sequences, config.micro = 1, config.sequence_length = tokens;
  config.steps = steps, config.warmup_steps = 1, config.decay_steps = 1;
  config.dtype = Dtype::f64, config.end_of_document = end_of_document;
  Trainer trainer(config, model, spec::batch_of(sequences, 1, world().size()), at::kCPU,
                  std::make_shared<DrawnSamples>(), world());
  trainer.initialise();
  trainer.start_after(0);
  std::set<double> counts;
  for (std::int64_t step = 0; step < steps; ++step) {
    const double executed = trainer.step(false)->executed_flops;
    EXPECT_EQ(executed, stated(model, config, step).to_double()) << "step " << step;
    counts.insert(executed);
  }
  return counts;
}

TEST(TrainerExecutedFlopsImpl, AreTheSameInEveryStepOfOneShape) { EXPECT_EQ(compare(-1).size(), 1u); }

TEST(TrainerExecutedFlopsImpl, FollowTheDocumentsOfEachStep) { EXPECT_GT(compare(0).size(), 1u); }

}  // namespace
}  // namespace assay::impl::run::executed_flops_test
