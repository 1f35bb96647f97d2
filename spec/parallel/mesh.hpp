#pragma once
// Ranks as points of a five-dimensional mesh. Order, rules and example: spec/parallel/mesh.md.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::spec {

/// Axes from the slowest to the fastest: neighbours in tp have consecutive ranks.
enum class Axis { pp, dp_replicate, dp_shard, cp, tp };
constexpr int axes = 5;
/// "pp", "dp_replicate", ...
std::string_view to_string(Axis axis);

/// Extents or coordinates, one per axis: `mesh[Axis::tp]`.
struct PerAxis {
  std::array<std::int64_t, axes> values{};
  std::int64_t& operator[](Axis axis) { return values[static_cast<std::size_t>(axis)]; }
  std::int64_t operator[](Axis axis) const { return values[static_cast<std::size_t>(axis)]; }
  bool operator==(const PerAxis&) const = default;
};

struct Mesh {
  PerAxis extents{{1, 1, 1, 1, 1}};
  std::int64_t ranks() const;        ///< product of the extents
  std::int64_t batch_ranks() const;  ///< dp_replicate * dp_shard: ranks that read different sequences
  /// Times cp: ranks that hold different tokens, and one part of the state.
  std::int64_t state_ranks() const { return batch_ranks() * extents[Axis::cp]; }
};

/// Errors: SpecError mesh_c1 (an extent below 1, or more than 2^31 - 1 ranks), mesh_c2 (the product is not
/// `ranks`).
void check(const Mesh& mesh, std::int64_t ranks);
/// Errors: SpecError mesh_c5 when pp or cp is longer than 1: the trainer has no such layout yet.
void check_trainable(const Mesh& mesh);

/// The bijection between [0, ranks) and coordinates. Errors: SpecError mesh_c1, mesh_c3 (rank out of range),
/// mesh_c4 (a coordinate out of range).
PerAxis coordinates_of(const Mesh& mesh, std::int64_t rank);
std::int64_t rank_of(const Mesh& mesh, const PerAxis& coordinates);

/// A rank's group: ranks first, first + stride, ..., `size` of them, of which this one is number `number`.
struct RankGroup {
  std::int64_t first = 0, stride = 1, size = 1, number = 0;
  /// The same cut into groups of `of` neighbours, which divides `size`: the one that this rank is in, and the
  /// ranks that have its place in theirs.
  RankGroup neighbours(std::int64_t of) const;
  RankGroup alike(std::int64_t of) const;
  std::vector<std::int64_t> ranks() const;
  bool operator==(const RankGroup&) const = default;
};

/// Ranks that differ from `rank` in no coordinate but those from `slow` to `fast`, in their order. Errors: as
/// coordinates_of.
RankGroup group_of(const Mesh& mesh, std::int64_t rank, Axis slow, Axis fast);
inline RankGroup group_of(const Mesh& mesh, std::int64_t rank, Axis axis) {
  return group_of(mesh, rank, axis, axis);
}

}  // namespace assay::spec
