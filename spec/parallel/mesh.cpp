#include "spec/parallel/mesh.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {
constexpr std::int64_t most_ranks = (std::int64_t{1} << 31) - 1;

void check_extents(const Mesh& mesh) {
  std::int64_t product = 1;
  for (int a = 0; a < axes; ++a) {
    const std::int64_t extent = mesh.extents[static_cast<Axis>(a)];
    // mesh_c1
    require(extent >= 1 && extent <= most_ranks / product, "mesh_c1", [&] {
      return std::string(to_string(static_cast<Axis>(a))) + "=" + std::to_string(extent) + " with " +
             std::to_string(product) + " ranks before it";
    });
    product *= extent;
  }
}
}  // namespace

std::string_view to_string(Axis axis) {
  constexpr std::array<std::string_view, axes> names = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};
  return names[static_cast<std::size_t>(axis)];
}

std::int64_t Mesh::ranks() const {
  check_extents(*this);
  std::int64_t product = 1;
  for (std::int64_t extent : extents.values) product *= extent;
  return product;
}

std::int64_t Mesh::batch_ranks() const {
  check_extents(*this);
  return extents[Axis::dp_replicate] * extents[Axis::dp_shard];
}

void check(const Mesh& mesh, std::int64_t ranks) {
  const std::int64_t product = mesh.ranks();
  // mesh_c2
  require(product == ranks, "mesh_c2", [&] {
    std::string text;
    for (int a = 0; a < axes; ++a)
      text += std::string(a ? " * " : "") + std::string(to_string(static_cast<Axis>(a))) + " " +
              std::to_string(mesh.extents[static_cast<Axis>(a)]);
    return text + " = " + std::to_string(product) + ", but there are " + std::to_string(ranks) + " ranks";
  });
}

void check_trainable(const Mesh& mesh) {
  check_extents(mesh);
  for (Axis axis : {Axis::pp, Axis::cp}) {
    // mesh_c5
    require(mesh.extents[axis] == 1, "mesh_c5", [&] {
      return std::string(to_string(axis)) + "=" + std::to_string(mesh.extents[axis]) +
             ": the trainer's layouts have dp_replicate, dp_shard and tp only";
    });
  }
}

PerAxis coordinates_of(const Mesh& mesh, std::int64_t rank) {
  const std::int64_t ranks = mesh.ranks();
  // mesh_c3
  require(rank >= 0 && rank < ranks, "mesh_c3",
          [&] { return "rank " + std::to_string(rank) + " of " + std::to_string(ranks); });
  PerAxis coordinates;
  for (int a = axes - 1; a >= 0; --a) {
    const auto axis = static_cast<Axis>(a);
    coordinates[axis] = rank % mesh.extents[axis];
    rank /= mesh.extents[axis];
  }
  return coordinates;
}

std::int64_t rank_of(const Mesh& mesh, const PerAxis& coordinates) {
  check_extents(mesh);
  std::int64_t rank = 0;
  for (int a = 0; a < axes; ++a) {
    const auto axis = static_cast<Axis>(a);
    // mesh_c4
    require(coordinates[axis] >= 0 && coordinates[axis] < mesh.extents[axis], "mesh_c4", [&] {
      return std::string(to_string(axis)) + " coordinate " + std::to_string(coordinates[axis]) + " of " +
             std::to_string(mesh.extents[axis]);
    });
    rank = rank * mesh.extents[axis] + coordinates[axis];
  }
  return rank;
}

RankGroup RankGroup::neighbours(std::int64_t of) const {
  return {first + number / of * of * stride, stride, of, number % of};
}

RankGroup RankGroup::alike(std::int64_t of) const {
  return {first + number % of * stride, stride * of, size / of, number / of};
}

std::vector<std::int64_t> RankGroup::ranks() const {
  std::vector<std::int64_t> out;
  for (std::int64_t each = 0; each < size; ++each) out.push_back(first + each * stride);
  return out;
}

RankGroup group_of(const Mesh& mesh, std::int64_t rank, Axis slow, Axis fast) {
  PerAxis coordinates = coordinates_of(mesh, rank);
  RankGroup group;
  for (int a = static_cast<int>(slow); a <= static_cast<int>(fast); ++a) {
    const auto axis = static_cast<Axis>(a);
    group.size *= mesh.extents[axis];
    group.number = group.number * mesh.extents[axis] + coordinates[axis];
    coordinates[axis] = 0;
  }
  for (int a = static_cast<int>(fast) + 1; a < axes; ++a) group.stride *= mesh.extents[static_cast<Axis>(a)];
  group.first = rank_of(mesh, coordinates);
  return group;
}

}  // namespace assay::spec
