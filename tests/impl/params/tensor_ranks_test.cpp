// labels: parity property
// Tensor and sequence parallelism, beside every data layout, on ranks that are threads: five steps in fp64
// against the reference on the whole batch, and bytes by collective against the formula.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>

#include "impl/params/replica_hash.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/load.hpp"
#include "tests/impl/comm/solo_communicator.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/support/label_of.hpp"

namespace assay::impl::tensor_ranks_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

/// What the ranks find, one line each that found something.
std::string found(const LayoutCase& c, const spec::Layout& layout) {
  std::mutex mutex;
  std::string all;
  tests::on_thread_ranks(static_cast<int>(layout.ranks * c.tensor), [&](Communicator& communicator) {
    const std::string mine = tests::difference_from_reference(c, layout, communicator, at::kCPU);
    const std::scoped_lock lock(mutex);
    if (!mine.empty()) all += "rank " + std::to_string(communicator.rank()) + ": " + mine + "\n";
  });
  return all;
}

TEST(TensorRanksImpl, OfEveryNumberTrainAsTheReference) {
  for (const std::int64_t tensor : {2, 3, 4})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const LayoutCase c{
          .seed = seed, .documents = static_cast<tests::Documents>(seed % 2), .tensor = tensor};
      const spec::Layout layout = spec::layout_of(DataParallel::replicate, 1);
      EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
    }
}

RC_GTEST_PROP(TensorRanksImpl, BesideEveryDataLayoutTrainAsTheReference, ()) {
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                      DataParallel::hybrid);
  // Up to 8 ranks in all: tensor ranks of a data rank, data ranks of a shard group, shard groups.
  const auto [tensor, shard, groups] =
      *rc::gen::elementOf(std::vector<std::array<std::int64_t, 3>>{{1, 2, 2},
                                                                   {2, 1, 1},
                                                                   {2, 2, 1},
                                                                   {2, 1, 2},
                                                                   {2, 3, 1},
                                                                   {2, 4, 1},
                                                                   {2, 2, 2},
                                                                   {3, 1, 1},
                                                                   {3, 2, 1},
                                                                   {3, 1, 2},
                                                                   {4, 1, 1},
                                                                   {4, 2, 1},
                                                                   {4, 1, 2}});
  const spec::Layout layout = spec::layout_of(data, shard * groups, data == DataParallel::hybrid ? shard : 0);
  const LayoutCase c{.seed = *rc::gen::inRange<std::uint64_t>(0, 1000),
                     .micro = *rc::gen::inRange<std::int64_t>(1, 3),
                     .accumulation = *rc::gen::inRange<std::int64_t>(1, 4),
                     .documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed),
                     .ignored = *rc::gen::element(tests::Ignored::none, tests::Ignored::some,
                                                  tests::Ignored::sequences, tests::Ignored::most),
                     .tensor = tensor,
                     .recompute = *rc::gen::elementOf(std::vector<spec::Recompute>(
                         std::begin(spec::all_recomputes), std::end(spec::all_recomputes)))};
  const std::string all = found(c, layout);
  if (!all.empty()) RC_FAIL(tests::describe(c, layout) + "\n" + all);
}

/// The head in several chunks; a vocabulary of which the last rank holds nothing but padding.
TEST(TensorRanksImpl, WithChunksOfTheHeadAndARankWithoutVocabularyTrainAsTheReference) {
  const spec::Layout alone = spec::layout_of(DataParallel::replicate, 1);
  for (const LayoutCase& c :
       {LayoutCase{.seed = 3, .ignored = tests::Ignored::some, .tensor = 2, .chunk_logits = 24},
        LayoutCase{.seed = 4, .tensor = 4, .vocab = 5}})
    EXPECT_EQ(found(c, alone), "") << tests::describe(c, alone);
}

/// In bf16, states included: losses fall, and what several tensor ranks hold stays the same bits.
TEST(TensorRanksImpl, CopiesInBf16StayTheSameBits) {
  for (const Dtype states : {Dtype::f32, Dtype::bf16})
    for (const DataParallel data : {DataParallel::replicate, DataParallel::shard})
      tests::on_thread_ranks(8, [&](Communicator& communicator) {
        const LayoutCase c{.seed = 11, .micro = 2, .tensor = 4};  // two ranks share a KV head
        const spec::Layout layout = spec::layout_of(data, 2);
        tests::StepRunner runner(tests::case_model(c), Dtype::bf16, at::kCPU, communicator, layout,
                                 tests::layout_settings(), c.seed, states, Dtype::f32,
                                 spec::Recompute::norms_swiglu, {}, c.tensor);
        const auto whole = tests::whole_batch(c, layout.ranks, 0);
        const auto mine = tests::dealt(whole, c, layout.ranks, runner.groups().batch().rank());
        std::vector<double> losses;
        for (int step = 0; step < 6; ++step)
          losses.push_back(runner.step(mine, static_cast<double>(whole.valid_tokens()), 1e-2).cross_entropy);
        EXPECT_LT(losses.back(), losses.front());
        runner.parameters().settle_weights();
        const at::Tensor master =
            tests::of_tensor_ranks(runner, tests::whole_of(runner, runner.buffers().master));
        for (const spec::Parameter& parameter : runner.buffers().model.parameters)
          EXPECT_FALSE(master.narrow(0, parameter.offset, parameter.size).isnan().any().item<bool>())
              << parameter.name << ": copies differ, or padding is not zero";
        EXPECT_EQ(compare_replicas(runner.buffers(), runner.groups()).odd, "");
        // A bit of a gain, on tensor rank 1 wherever it is held: data ranks agree, tensor ranks do not.
        const at::Tensor gain = owned_of(runner.buffers(), runner.buffers().weights, 1);
        if (runner.groups().tensor().rank() == 1 && gain.defined()) gain.view(at::kShort)[0].bitwise_xor_(1);
        const ReplicaCheck check = compare_replicas(runner.buffers(), runner.groups());
        EXPECT_EQ(check.odd.find("rank 1"), 0u) << check.odd;
      });
}

/// A gradient that is not finite on a tensor rank is named as that, with a parameter.
TEST(TensorRanksImpl, AGradientThatIsNotFiniteIsNamed) {
  tests::on_thread_ranks(2, [&](Communicator& communicator) {
    const LayoutCase c{.seed = 2, .tensor = 2};
    tests::StepRunner runner(tests::case_model(c), Dtype::f32, at::kCPU, communicator, spec::Layout{},
                             tests::layout_settings(), c.seed, Dtype::f32, Dtype::f32,
                             spec::Recompute::norms_swiglu, {}, c.tensor);
    const auto whole = tests::whole_batch(c, 1, 0);
    std::string text;
    try {
      runner.step({whole}, static_cast<double>(whole.valid_tokens()), 1e-3, [&](run::StepInput& input) {
        if (communicator.rank() == 1) input.valid_tokens = std::numeric_limits<double>::min();
      });
    } catch (const run::NonFiniteError& error) {
      text = error.what();
    }
    EXPECT_NE(text.find("rank 1: loss is "), std::string::npos) << text;
    EXPECT_NE(text.find("gradient of "), std::string::npos) << text;
    EXPECT_EQ(text.find("finite on every rank"), std::string::npos) << text;
  });
}

/// config_c14: two hosts of six ranks, and data-parallel ranks of four.
TEST(TensorRanksImpl, C14RefusesShardGroupsOfHostsThatTensorRanksDoNotDivide) {
  class TwoHosts final : public tests::SoloCommunicator {
   public:
    TwoHosts() : SoloCommunicator(12, 0) {}
    Ticket begin(const Request& request) override {
      const Ticket ticket = SoloCommunicator::begin(request);
      if (request.collective == spec::Collective::texts)
        for (std::size_t rank = 6; rank < 12; ++rank) (*request.all_texts)[rank] += " of another host";
      return ticket;
    }
  } ranks;
  const auto layout = [&](const std::vector<std::string>& settings) {
    return run::layout_of(spec::load("", settings), ranks);
  };
  EXPECT_EQ(tests::label_of([&] { layout({"parallel.tensor=4", "parallel.data=hybrid"}); }), "config_c14");
  EXPECT_EQ(layout({"parallel.tensor=4", "parallel.data=hybrid", "parallel.shard_ranks=3"}).shard_ranks, 3);
  EXPECT_EQ(layout({"parallel.tensor=3", "parallel.data=hybrid"}).shard_ranks, 2);
}

}  // namespace
}  // namespace assay::impl::tensor_ranks_test
