// labels: parity property
// Tensor and sequence parallelism, beside every data layout, on ranks that are threads: five steps in fp64
// against the reference on the whole batch, and bytes by collective against the formula.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

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

}  // namespace
}  // namespace assay::impl::tensor_ranks_test
