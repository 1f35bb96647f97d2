#include "spec/parallel/data_layout.hpp"

#include <array>
#include <string>

#include "spec/error.hpp"

namespace assay::spec {

std::string_view to_string(DataParallel data) {
  constexpr std::array<std::string_view, 4> names = {"replicate", "zero1", "shard", "hybrid"};
  return names[static_cast<std::size_t>(data)];
}

Layout layout_of(DataParallel data, std::int64_t ranks, std::int64_t shard_ranks,
                 std::int64_t ranks_per_host) {
  // data_layout_c1
  require(ranks >= 1 && shard_ranks >= 0, "data_layout_c1", [&] {
    return "data-parallel ranks = " + std::to_string(ranks) +
           ", shard_ranks = " + std::to_string(shard_ranks);
  });
  if (data == DataParallel::replicate) return {data, ranks, 1};
  if (data != DataParallel::hybrid) return {data, ranks, ranks};
  // data_layout_c3
  require(shard_ranks > 0 || ranks_per_host > 0, "data_layout_c3", [] {
    return std::string(
        "parallel.data = \"hybrid\" shards within a host unless parallel.shard_ranks says otherwise, but the "
        "hosts have different numbers of ranks");
  });
  const std::int64_t within = shard_ranks > 0 ? shard_ranks : ranks_per_host;
  // data_layout_c2
  require(within <= ranks && ranks % within == 0, "data_layout_c2", [&] {
    return "parallel.shard_ranks = " + std::to_string(within) + " does not divide the " +
           std::to_string(ranks) + " data-parallel rank" + (ranks == 1 ? "" : "s");
  });
  return {data, ranks, within};
}

Mesh mesh_of(const Layout& layout, std::int64_t tensor_ranks) {
  Mesh mesh;
  mesh.extents[Axis::dp_replicate] = layout.replicas();
  mesh.extents[Axis::dp_shard] = layout.shard_ranks;
  check(mesh, layout.ranks);
  mesh.extents[Axis::tp] = tensor_ranks;
  return mesh;
}

}  // namespace assay::spec
