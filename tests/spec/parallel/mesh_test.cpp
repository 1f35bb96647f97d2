// labels: unit property
#include "spec/parallel/mesh.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::mesh_test {
namespace {

Mesh data_parallel_mesh(std::int64_t ranks) { return {{{1, ranks, 1, 1, 1}}}; }

TEST(MeshSpec, FollowsTheSpecExample) {
  const Mesh mesh{{{1, 2, 1, 1, 2}}};
  EXPECT_EQ(coordinates_of(mesh, 3), (PerAxis{{0, 1, 0, 0, 1}}));
  EXPECT_EQ(group_of(mesh, 3, Axis::tp).ranks(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(group_of(mesh, 3, Axis::dp_replicate).ranks(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(group_of(mesh, 3, Axis::pp).ranks(), (std::vector<std::int64_t>{3}));
}

TEST(MeshSpec, DataParallelRanksAreTheReplicas) {
  const Mesh mesh = data_parallel_mesh(8);
  EXPECT_NO_THROW(check(mesh, 8));
  EXPECT_NO_THROW(check_trainable(mesh));
  EXPECT_EQ(mesh.batch_ranks(), 8);
  for (std::int64_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(coordinates_of(mesh, rank)[Axis::dp_replicate], rank);
}

TEST(MeshSpec, C1RejectsEmptyAndOverfullMeshes) {
  EXPECT_EQ(tests::label_of([] { check(data_parallel_mesh(0), 0); }), "mesh_c1");
  EXPECT_EQ(tests::label_of([] { Mesh{{{1, 1, 1, -2, 1}}}.ranks(); }), "mesh_c1");
  const std::int64_t large = std::int64_t{1} << 31;
  EXPECT_EQ(tests::label_of([&] { Mesh{{{large, large, large, large, large}}}.ranks(); }), "mesh_c1");
}

TEST(MeshSpec, C2RejectsAnotherNumberOfRanks) {
  EXPECT_EQ(tests::label_of([] { check(Mesh{{{1, 2, 1, 1, 2}}}, 8); }), "mesh_c2");
}

TEST(MeshSpec, C3RejectsRanksOutOfRange) {
  for (std::int64_t rank : {-1, 4})
    EXPECT_EQ(tests::label_of([&] { coordinates_of(data_parallel_mesh(4), rank); }), "mesh_c3");
}

TEST(MeshSpec, C4RejectsCoordinatesOutOfRange) {
  EXPECT_EQ(tests::label_of([] { rank_of(data_parallel_mesh(4), PerAxis{{0, 4, 0, 0, 0}}); }), "mesh_c4");
  EXPECT_EQ(tests::label_of([] { rank_of(data_parallel_mesh(4), PerAxis{{0, 0, 0, -1, 0}}); }), "mesh_c4");
}

TEST(MeshSpec, C5RejectsLayoutsThatTheTrainerDoesNotHave) {
  for (Axis axis : {Axis::pp, Axis::cp}) {
    Mesh mesh = data_parallel_mesh(2);
    mesh.extents[axis] = 2;
    EXPECT_EQ(tests::label_of([&] { check_trainable(mesh); }), "mesh_c5");
  }
}

Mesh draw_mesh() {
  Mesh mesh;
  for (auto& extent : mesh.extents.values) extent = *rc::gen::inRange<std::int64_t>(1, 5);
  return mesh;
}

RC_GTEST_PROP(MeshSpec, RanksAndCoordinatesAreABijection, ()) {
  const Mesh mesh = draw_mesh();
  std::set<std::array<std::int64_t, axes>> seen;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const PerAxis coordinates = coordinates_of(mesh, rank);
    RC_ASSERT(rank_of(mesh, coordinates) == rank);
    RC_ASSERT(seen.insert(coordinates.values).second);
  }
}

/// Of neighbouring axes, and cut into groups of neighbours, whose ranks with one place in theirs are a group.
RC_GTEST_PROP(MeshSpec, GroupsOfSeveralAxesAndWithinThem, ()) {
  const Mesh mesh = draw_mesh();
  const int slow = *rc::gen::inRange(0, axes), fast = *rc::gen::inRange(slow, axes);
  const auto rank = *rc::gen::inRange<std::int64_t>(0, mesh.ranks());
  const PerAxis own = coordinates_of(mesh, rank);
  const RankGroup group = group_of(mesh, rank, static_cast<Axis>(slow), static_cast<Axis>(fast));
  std::vector<std::int64_t> expected;
  for (std::int64_t other = 0; other < mesh.ranks(); ++other) {
    const PerAxis coordinates = coordinates_of(mesh, other);
    bool in = true;
    for (int a = 0; a < axes; ++a) {
      const auto axis = static_cast<Axis>(a);
      in = in && ((a >= slow && a <= fast) || coordinates[axis] == own[axis]);
    }
    if (in) expected.push_back(other);
  }
  RC_ASSERT(group.ranks() == expected);
  RC_ASSERT(expected.at(static_cast<std::size_t>(group.number)) == rank);
  std::int64_t of = 1;
  while (*rc::gen::arbitrary<bool>() && group.size % (2 * of) == 0) of *= 2;
  const std::vector<std::int64_t> near = group.neighbours(of).ranks(), alike = group.alike(of).ranks();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const auto holds = [&](const std::vector<std::int64_t>& ranks) {
      return std::count(ranks.begin(), ranks.end(), expected[i]) == 1;
    };
    RC_ASSERT(holds(near) == (number / of == group.number / of));
    RC_ASSERT(holds(alike) == (number % of == group.number % of));
  }
  RC_ASSERT(near.at(static_cast<std::size_t>(group.neighbours(of).number)) == rank);
  RC_ASSERT(alike.at(static_cast<std::size_t>(group.alike(of).number)) == rank);
}

RC_GTEST_PROP(MeshSpec, GroupsOfAnAxisPartitionTheRanks, ()) {
  const Mesh mesh = draw_mesh();
  const auto axis = static_cast<Axis>(*rc::gen::inRange(0, axes));
  std::set<std::int64_t> covered;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const auto group = group_of(mesh, rank, axis).ranks();
    RC_ASSERT(static_cast<std::int64_t>(group.size()) == mesh.extents[axis]);
    RC_ASSERT(group[static_cast<std::size_t>(coordinates_of(mesh, rank)[axis])] == rank);
    for (std::int64_t other : group) RC_ASSERT(group_of(mesh, other, axis).ranks() == group);
    covered.insert(group.begin(), group.end());
  }
  RC_ASSERT(static_cast<std::int64_t>(covered.size()) == mesh.ranks());
}

}  // namespace
}  // namespace assay::spec::mesh_test
