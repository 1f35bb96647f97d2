// labels: unit property
// What ranks that are left write of a state that they hold in copies, and whether it is one state.
#include "impl/run/survivors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/run/state_mark.hpp"

namespace assay::impl::run::survivors_test {
namespace {

/// Of `ranks` ranks, `of` neighbours hold one copy of the state between them.
std::vector<HeldParts> parts_of(std::int64_t ranks, std::int64_t of) {
  std::vector<HeldParts> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) parts.push_back({.dense = rank % of, .experts = 0});
  return parts;
}

TEST(SurvivorsImpl, ALonePartIsLostWithItsRank) {
  EXPECT_FALSE(writer_without(parts_of(4, 4), 0, 3));  // parallel.data=shard
  EXPECT_TRUE(writer_without(parts_of(4, 1), 0, 3));   // replicate
  EXPECT_TRUE(writer_without(parts_of(4, 2), 0, 3));   // hybrid
  std::vector<HeldParts> parts = parts_of(4, 1);
  parts[3].experts = 1;
  EXPECT_FALSE(writer_without(parts, 0, 3)) << "its experts";
}

/// The copies of each part that are left are numbered from 0 on, each number once.
RC_GTEST_PROP(SurvivorsImpl, WhatIsLeftOfEachPartIsDealtOnce, ()) {
  const auto of = *rc::gen::inRange<std::int64_t>(1, 5), copies = *rc::gen::inRange<std::int64_t>(2, 5);
  const std::vector<HeldParts> parts = parts_of(of * copies, of);
  const int ranks = static_cast<int>(parts.size()), lost = *rc::gen::inRange(0, ranks);
  std::vector<std::vector<int>> seen(static_cast<std::size_t>(of),
                                     std::vector<int>(static_cast<std::size_t>(copies)));
  int biases = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == lost) continue;
    const auto writer = writer_without(parts, rank, lost);
    RC_ASSERT(writer);
    RC_ASSERT(writer->dense.count == copies - (rank % of == lost % of ? 1 : 0));
    ++seen[static_cast<std::size_t>(rank % of)][static_cast<std::size_t>(writer->dense.number)];
    biases += writer->biases ? 1 : 0;
  }
  for (std::int64_t part = 0; part < of; ++part)
    for (std::int64_t number = 0; number < copies; ++number)
      RC_ASSERT(seen[static_cast<std::size_t>(part)][static_cast<std::size_t>(number)] ==
                (part == lost % of && number == copies - 1 ? 0 : 1));
  RC_ASSERT(biases == 1);
}

TEST(StateMarkImpl, AStateIsOneAsLongAsItsCountStays) {
  StateMark mark(at::kCPU);
  EXPECT_FALSE(mark.at(mark.count())) << "nothing is loaded";
  mark.is(WholeState{.step = 4, .skipped = 1});
  const std::uint32_t before = mark.count();
  ASSERT_TRUE(mark.at(before));
  EXPECT_EQ(mark.at(before)->step, 4);
  EXPECT_EQ(mark.at(before)->skipped, 1);
  mark.is(std::nullopt);
  EXPECT_NE(mark.count(), before);
  EXPECT_FALSE(mark.at(mark.count())) << "in the middle of an update";
  mark.is(WholeState{.step = 5});
  EXPECT_NE(mark.count(), before);
  EXPECT_EQ(mark.at(mark.count())->step, 5);
  const std::uint32_t after = mark.count();
  mark.is(WholeState{.step = 5, .skipped = 1});  // said again: nothing has changed
  EXPECT_EQ(mark.count(), after);
}

}  // namespace
}  // namespace assay::impl::run::survivors_test
