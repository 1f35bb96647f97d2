// labels: parity
// ranks: 1 2 4
// Every layout over Gloo, as `assay train --ranks N` starts it, against the reference on the whole batch.
#include <gtest/gtest.h>

#include "impl/comm/launch.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::layouts_ranks_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

TEST(LayoutsOnRanksImpl, EveryLayoutTrainsAsTheReference) {
  for (DataParallel data :
       {DataParallel::replicate, DataParallel::zero1, DataParallel::shard, DataParallel::hybrid}) {
    const spec::Layout layout =
        spec::layout_of(data, world().size(), data == DataParallel::hybrid ? (world().size() + 1) / 2 : 0);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const LayoutCase c{.seed = 100 + seed,
                         .micro = static_cast<std::int64_t>(1 + seed % 2),
                         .accumulation = static_cast<std::int64_t>(1 + seed % 3),
                         .documents = static_cast<tests::Documents>(seed % 2),
                         .ignored = static_cast<tests::Ignored>(seed % 4)};
      EXPECT_EQ(tests::difference_from_reference(c, layout, world(), at::kCPU), "")
          << "rank " << world().rank() << ", " << tests::describe(c, layout);
    }
  }
}

TEST(LayoutsOnRanksImpl, ExpertRanksTrainAsTheReference) {
  for (DataParallel data : {DataParallel::replicate, DataParallel::zero1, DataParallel::shard})
    for (std::int64_t expert = 2; expert <= world().size(); expert *= 2) {
      const spec::Layout layout = spec::layout_of(data, world().size());
      LayoutCase c{.seed = 120, .accumulation = 2, .steps = 3};
      c.experts = true, c.expert = expert;
      EXPECT_EQ(tests::difference_from_reference(c, layout, world(), at::kCPU), "")
          << "rank " << world().rank() << ", " << tests::describe(c, layout);
    }
}

TEST(LayoutsOnRanksImpl, ShardedLayoutsTrainInLowPrecision) {
  const LayoutCase c{.seed = 5, .micro = 1, .accumulation = 2};
  for (DataParallel data : {DataParallel::replicate, DataParallel::zero1, DataParallel::shard}) {
    for (Dtype wire : {Dtype::f32, Dtype::bf16}) {
      tests::StepRunner runner(tests::tiny_model(c.seed), Dtype::bf16, at::kCPU, world(),
                               spec::layout_of(data, world().size()), tests::layout_settings(), c.seed,
                               Dtype::f32, wire);
      const auto whole = tests::whole_batch(c, world().size(), 0);
      const auto mine = tests::dealt(whole, c, world().size(), world().rank());
      const auto tokens = static_cast<double>(whole.valid_tokens());
      const double first = runner.step(mine, tokens, 1e-2).cross_entropy;
      double last = first;
      for (int step = 1; step < 8; ++step) last = runner.step(mine, tokens, 1e-2).cross_entropy;
      EXPECT_LT(last, first) << spec::to_string(data);
    }
  }
}

}  // namespace
}  // namespace assay::impl::layouts_ranks_test
