// labels: unit property
#include "spec/parallel/data_layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "spec/error.hpp"

namespace assay::spec::data_layout_test {
namespace {

std::string refusal(DataParallel data, std::int64_t ranks, std::int64_t shard_ranks,
                    std::int64_t per_host = 0) {
  try {
    layout_of(data, ranks, shard_ranks, per_host);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DataLayoutSpec, FollowsTheSpecExample) {
  const Layout layout = layout_of(DataParallel::hybrid, 8, 4);
  const Mesh mesh = mesh_of(layout);
  EXPECT_NO_THROW(check_trainable(mesh));
  EXPECT_EQ(group_of(mesh, 2, Axis::dp_shard).ranks(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(group_of(mesh, 7, Axis::dp_shard).ranks(), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(group_of(mesh, 6, Axis::dp_replicate).ranks(), (std::vector<std::int64_t>{2, 6}));
}

TEST(DataLayoutSpec, EachKindShardsWhatItsNameSays) {
  const auto of = [](DataParallel data) { return layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0); };
  EXPECT_FALSE(of(DataParallel::replicate).shards_state());
  EXPECT_EQ(of(DataParallel::replicate).replicas(), 4);
  EXPECT_TRUE(of(DataParallel::zero1).shards_state());
  EXPECT_FALSE(of(DataParallel::zero1).shards_weights());
  EXPECT_TRUE(of(DataParallel::shard).shards_weights());
  EXPECT_EQ(of(DataParallel::shard).replicas(), 1);
  EXPECT_TRUE(of(DataParallel::hybrid).shards_weights());
  EXPECT_EQ(of(DataParallel::hybrid).replicas(), 2);
}

TEST(DataLayoutSpec, HybridShardsWithinAHostUnlessToldOtherwise) {
  EXPECT_EQ(layout_of(DataParallel::hybrid, 16, 0, 8).shard_ranks, 8);
  EXPECT_EQ(layout_of(DataParallel::hybrid, 16, 4, 8).shard_ranks, 4);
}

TEST(DataLayoutSpec, C1RejectsNoRanks) {
  EXPECT_EQ(refusal(DataParallel::replicate, 0, 0).find("data_layout_c1"), 0u);
  EXPECT_EQ(refusal(DataParallel::hybrid, 4, -2).find("data_layout_c1"), 0u);
}

TEST(DataLayoutSpec, C2RejectsShardsThatDoNotDivideTheDataRanks) {
  const std::string text = refusal(DataParallel::hybrid, 8, 3);
  EXPECT_EQ(text, "data_layout_c2: parallel.shard_ranks = 3 does not divide the 8 data-parallel ranks");
  EXPECT_EQ(refusal(DataParallel::hybrid, 8, 16).find("data_layout_c2"), 0u);
}

TEST(DataLayoutSpec, C3RejectsUnevenHosts) {
  EXPECT_EQ(refusal(DataParallel::hybrid, 6, 0).find("data_layout_c3"), 0u);
}

RC_GTEST_PROP(DataLayoutSpec, GroupsOfBothAxesMeetInOneRank, ()) {
  const auto shard_ranks = *rc::gen::inRange<std::int64_t>(1, 9),
             replicas = *rc::gen::inRange<std::int64_t>(1, 9);
  const Layout layout = layout_of(DataParallel::hybrid, shard_ranks * replicas, shard_ranks);
  RC_ASSERT(layout.replicas() == replicas);
  const Mesh mesh = mesh_of(layout);
  RC_ASSERT(mesh.batch_ranks() == layout.batch_ranks() && mesh.state_ranks() == layout.ranks);
  const auto rank = *rc::gen::inRange<std::int64_t>(0, layout.ranks);
  int common = 0;
  for (std::int64_t a : group_of(mesh, rank, Axis::dp_shard).ranks())
    for (std::int64_t b : group_of(mesh, rank, Axis::dp_replicate).ranks()) common += a == b;
  RC_ASSERT(common == 1);
  // Those of a shard group are neighbours.
  RC_ASSERT(group_of(mesh, rank, Axis::dp_shard).first == rank / shard_ranks * shard_ranks);
}

}  // namespace
}  // namespace assay::spec::data_layout_test
