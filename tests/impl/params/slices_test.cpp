// labels: unit property
// The slice table: in every layout each element of each parameter is on the ranks that should hold it, and
// written by exactly one.
#include "impl/params/slices.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <mutex>

#include "spec/error.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/params/layout_state.hpp"

namespace assay::impl::slices_test {
namespace {

using tests::RankState;
using tests::StateLayout;

const spec::ModelSpec dense = tests::case_model({.seed = 11, .tensor = 4, .vocab = 23});

spec::ModelSpec with_biases() {
  spec::ModelSpec model;
  for (std::uint64_t seed = 0; !model.experts || !model.experts->router_bias; ++seed)
    model = tests::case_model({.seed = seed, .tensor = 2, .experts = true, .expert = 4});
  return model;
}
const spec::ModelSpec sparse = with_biases();

/// How often each element of each parameter is in the slices that `of` gives, over all ranks; by part.
std::vector<std::vector<at::Tensor>> times(
    const spec::ModelSpec& model, const StateLayout& layout, Dtype dtype,
    const std::function<std::vector<HeldSlice>(RankState&, Buffer)>& of,
    std::vector<std::int64_t>* elements = nullptr) {
  const spec::Inventory inventory = spec::inventory(model);
  std::vector<std::vector<at::Tensor>> count(std::size(tests::state_parts));
  for (auto& part : count)
    for (const spec::Parameter& parameter : inventory.parameters) {
      const spec::Slice whole = spec::whole_slice(parameter.shape);
      part.push_back(at::zeros({whole.rows, whole.columns}, at::kLong));
    }
  std::mutex mutex;
  if (elements) elements->assign(static_cast<std::size_t>(layout.ranks()), 0);
  tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
    RankState state(model, communicator, layout, dtype);
    for (std::size_t part = 0; part < count.size(); ++part) {
      const std::vector<HeldSlice> slices = of(state, tests::state_parts[part]);
      const std::scoped_lock lock(mutex);
      std::size_t before = 0;
      for (const HeldSlice& each : slices) {
        EXPECT_GE(each.number, std::exchange(before, each.number)) << "not in the parameters' order";
        EXPECT_EQ(each.values.size(0), each.slice.rows);
        EXPECT_EQ(each.values.size(1), each.slice.columns);
        count[part][each.number]
            .narrow(0, each.slice.row, each.slice.rows)
            .narrow(1, each.slice.column, each.slice.columns)
            .add_(1);
        if (elements) (*elements)[static_cast<std::size_t>(communicator.rank())] += each.slice.size();
      }
    }
  });
  return count;
}

std::vector<HeldSlice> written(RankState& state, Buffer part) {
  return own_slices(state.buffers, part, writer_of(state.groups));
}

TEST(SlicesImpl, EachElementIsWrittenByExactlyOneRank) {
  for (const spec::ModelSpec* model : {&dense, &sparse})
    for (const StateLayout& layout : tests::state_layouts(*model, 8))
      for (const Dtype dtype : {Dtype::f64, Dtype::bf16}) {
        SCOPED_TRACE(layout.name());
        const auto count = times(*model, layout, dtype, written);
        const spec::Inventory inventory = spec::inventory(*model);
        for (std::size_t part = 0; part < count.size(); ++part)
          for (std::size_t i = 0; i < inventory.parameters.size(); ++i) {
            const bool none = part > 0 && !inventory.parameters[i].learned();
            EXPECT_TRUE((count[part][i] == (none ? 0 : 1)).all().item<bool>())
                << inventory.parameters[i].name;
          }
      }
}

TEST(SlicesImpl, EachElementIsHeldByAsManyRanksAsTheLayoutSays) {
  for (const StateLayout& layout : tests::state_layouts(dense, 8)) {
    SCOPED_TRACE(layout.name());
    const auto held = times(dense, layout, Dtype::bf16,
                            [](RankState& state, Buffer part) { return held_slices(state.buffers, part); });
    const spec::Inventory inventory = spec::inventory(dense);
    for (std::size_t i = 0; i < inventory.parameters.size(); ++i) {
      const spec::Parameter& parameter = inventory.parameters[i];
      const bool kv = parameter.role == spec::Role::key || parameter.role == spec::Role::value;
      const std::int64_t of_tensor_ranks = parameter.role == spec::Role::norm ? layout.tensor
                                           : kv ? spec::kv_holders(dense, layout.tensor)
                                                : 1;
      EXPECT_TRUE((held[0][i] == layout.layout.replicas() * of_tensor_ranks).all().item<bool>())
          << parameter.name;
    }
  }
}

/// Ranks that hold the same share the writing to a few elements; what tensor ranks share is the first's.
TEST(SlicesImpl, RanksWriteEqualParts) {
  for (const StateLayout& layout : tests::state_layouts(dense, 8)) {
    if (layout.tensor > 1) continue;
    SCOPED_TRACE(layout.name());
    std::vector<std::int64_t> elements;
    times(dense, layout, Dtype::f32, written, &elements);
    const auto [least, most] = std::minmax_element(elements.begin(), elements.end());
    // A shard's end is padding, at most an alignment for each block and rank.
    const std::int64_t padding =
        layout.layout.shard_ranks > 1 ? 3 * (dense.layers + 2) * layout.layout.shard_ranks * 64 : 3 * 64 * 40;
    EXPECT_LE(*most - *least, padding);
    EXPECT_GT(*most, 0);
  }
}

/// Two hosts whose disks are not shared: what rank 0's host holds is written there.
TEST(SlicesImpl, OnlyRanksThatSeeTheFolderWrite) {
  const StateLayout replicated{spec::layout_of(spec::DataParallel::replicate, 4), 1, 1},
      per_host{spec::layout_of(spec::DataParallel::hybrid, 4, 2), 1, 1},
      over_hosts{spec::layout_of(spec::DataParallel::shard, 4), 1, 1};
  const auto by_first_host = [](RankState& state, Buffer part) {
    return own_slices(state.buffers, part, writer_of(state.groups, state.groups.all().rank() < 2));
  };
  for (const StateLayout& layout : {replicated, per_host}) {
    std::vector<std::int64_t> elements;
    const auto count = times(dense, layout, Dtype::f32, by_first_host, &elements);
    for (const auto& part : count)
      for (const at::Tensor& each : part) EXPECT_TRUE((each == 1).all().item<bool>()) << layout.name();
    EXPECT_EQ(elements[2] + elements[3], 0);
    EXPECT_GT(std::min(elements[0], elements[1]), 0);
  }
  try {
    times(dense, over_hosts, Dtype::f32, by_first_host);
    FAIL() << "shards on a host that does not see the folder";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("on a disk that all hosts share"), std::string::npos);
  }
}

TEST(SlicesImpl, WhatIsPutIsWhatIsHeld) {
  for (const spec::ModelSpec* model : {&dense, &sparse})
    for (const StateLayout& layout : tests::state_layouts(*model, 4))
      for (const auto& kind :
           {std::pair{Dtype::f64, Dtype::f32}, {Dtype::bf16, Dtype::f32}, {Dtype::bf16, Dtype::bf16}})
        tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
          RankState state(*model, communicator, layout, kind.first, kind.second);
          state.fill(3);
          EXPECT_EQ(state.first_other(3), "") << layout.name();
          EXPECT_NE(state.first_other(4), "") << layout.name();
        });
}

}  // namespace
}  // namespace assay::impl::slices_test
