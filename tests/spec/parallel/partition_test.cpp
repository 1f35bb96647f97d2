// labels: unit property
#include "spec/parallel/partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "spec/error.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::partition_test {
namespace {

/// Blocks of one vector each.
Inventory blocks_of(const std::vector<std::int64_t>& sizes) {
  Inventory inventory;
  for (std::int64_t size : sizes) {
    inventory.parameters.push_back({"p" + std::to_string(inventory.blocks),
                                    {size},
                                    Role::norm,
                                    inventory.blocks,
                                    inventory.flat_size,
                                    size});
    inventory.flat_size += size;
    ++inventory.blocks;
  }
  return inventory;
}

TEST(PartitionSpec, FollowsTheSpecExample) {
  const Partition p = partition(blocks_of({128, 192, 64}), 2);
  EXPECT_EQ(p.inventory.flat_size, 512);
  EXPECT_EQ(p.shard_size, 256);
  const auto is = [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    const auto range = p.owned(block, 1);
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.end, end);
  };
  is(0, 64, 128), is(1, 256, 384), is(2, 448, 512);
  EXPECT_EQ(p.largest_block(), 256) << "of 192 and what they are padded with";
  EXPECT_EQ(p.inventory.at("p1").offset, 128);
  EXPECT_EQ(p.inventory.at("p2").offset, 384);
}

TEST(PartitionSpec, C1RejectsNoRanksAndNoAlignment) {
  const Inventory inventory = blocks_of({64});
  EXPECT_EQ(tests::label_of([&] { partition(inventory, 0); }), "partition_c1");
  EXPECT_EQ(tests::label_of([&] { partition(inventory, (1 << 20) + 1); }), "partition_c1");
  EXPECT_EQ(tests::label_of([&] { partition(inventory, 2, 0); }), "partition_c1");
}

TEST(PartitionSpec, C2RejectsBlocksAndRanksThatAreNotThere) {
  const Partition p = partition(blocks_of({64, 64}), 2);
  for (const auto& [block, rank] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{-1, 0}, {2, 0}, {0, -1}, {0, 2}})
    EXPECT_EQ(tests::label_of([&, block = block, rank = rank] { p.owned(block, rank); }), "partition_c2");
}

RC_GTEST_PROP(PartitionSpec, OneRankLeavesTheInventoryAsItIs, ()) {
  const Inventory whole = inventory(tests::draw_model());
  const Partition p = partition(whole, 1);
  RC_ASSERT(p.inventory.flat_size == whole.flat_size && p.shard_size == whole.flat_size);
  for (std::size_t i = 0; i < whole.parameters.size(); ++i)
    RC_ASSERT(p.inventory.parameters[i].offset == whole.parameters[i].offset);
  RC_ASSERT(p.runs(0).size() == 1u);
}

RC_GTEST_PROP(PartitionSpec, EveryElementHasOneOwnerAndItsCanonicalPosition, ()) {
  const Inventory whole = inventory(tests::draw_model());
  const auto ranks = *rc::gen::inRange<std::int64_t>(1, 10);
  const Partition p = partition(whole, ranks);
  // Owner and canonical position of every element of the padded buffer.
  std::vector<int> owners(static_cast<std::size_t>(p.inventory.flat_size));
  std::vector<std::int64_t> canonical(owners.size(), -1);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t shard_end = 0;
    for (const Partition::Run& run : p.runs(rank)) {
      RC_ASSERT(run.shard_begin == shard_end);
      shard_end += run.size;
      for (std::int64_t i = 0; i < run.size; ++i) {
        ++owners[static_cast<std::size_t>(run.begin + i)];
        canonical[static_cast<std::size_t>(run.begin + i)] = run.canonical_begin + i;
      }
    }
    RC_ASSERT(shard_end == p.shard_size);
  }
  for (int owner : owners) RC_ASSERT(owner == 1);
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const Parameter &before = whole.parameters[i], &after = p.inventory.parameters[i];
    RC_ASSERT(before.name == after.name && before.size == after.size);
    for (std::int64_t e = 0; e < after.size; ++e)
      RC_ASSERT(canonical[static_cast<std::size_t>(after.offset + e)] == before.offset + e);
  }
}

RC_GTEST_PROP(PartitionSpec, BlocksAreEqualAlignedSharesWithLittlePadding, ()) {
  const Inventory whole = inventory(tests::draw_model());
  const auto ranks = *rc::gen::inRange<std::int64_t>(2, 10);
  const Partition p = partition(whole, ranks);
  for (std::int64_t b = 0; b < whole.blocks; ++b) {
    const auto before = whole.block_range(b), after = p.inventory.block_range(b);
    RC_ASSERT(after.end - after.begin == p.block_size(b));
    RC_ASSERT(p.block_size(b) % (ranks * 64) == 0 && after.begin % 64 == 0);
    const std::int64_t padding = p.block_size(b) - (before.end - before.begin);
    RC_ASSERT(padding >= 0 && padding < ranks * 64);
  }
}

}  // namespace
}  // namespace assay::spec::partition_test
