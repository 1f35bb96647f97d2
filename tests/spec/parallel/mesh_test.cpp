// labels: unit property
#include "spec/parallel/mesh.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::mesh_test {
namespace {

TEST(MeshSpec, FollowsTheSpecExample) {
  const Mesh mesh{{{1, 2, 1, 1, 2}}};
  EXPECT_EQ(coordinates_of(mesh, 3), (PerAxis{{0, 1, 0, 0, 1}}));
  EXPECT_EQ(group_of(mesh, 3, Axis::tp), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(group_of(mesh, 3, Axis::dp_replicate), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(group_of(mesh, 3, Axis::pp), (std::vector<std::int64_t>{3}));
}

TEST(MeshSpec, DataParallelRanksAreTheReplicas) {
  const Mesh mesh = data_parallel_mesh(8);
  EXPECT_NO_THROW(check(mesh, 8));
  EXPECT_NO_THROW(check_trainable(mesh));
  EXPECT_EQ(mesh.data_ranks(), 8);
  for (std::int64_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(coordinates_of(mesh, rank)[Axis::dp_replicate], rank);
}

TEST(MeshSpec, C1RejectsEmptyAndOverfullMeshes) {
  EXPECT_EQ(tests::label_of([] { data_parallel_mesh(0); }), "mesh_c1");
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

RC_GTEST_PROP(MeshSpec, GroupsOfAnAxisPartitionTheRanks, ()) {
  const Mesh mesh = draw_mesh();
  const auto axis = static_cast<Axis>(*rc::gen::inRange(0, axes));
  std::set<std::int64_t> covered;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const auto group = group_of(mesh, rank, axis);
    RC_ASSERT(static_cast<std::int64_t>(group.size()) == mesh.extents[axis]);
    RC_ASSERT(group[static_cast<std::size_t>(coordinates_of(mesh, rank)[axis])] == rank);
    for (std::int64_t other : group) RC_ASSERT(group_of(mesh, other, axis) == group);
    covered.insert(group.begin(), group.end());
  }
  RC_ASSERT(static_cast<std::int64_t>(covered.size()) == mesh.ranks());
}

}  // namespace
}  // namespace assay::spec::mesh_test
