#pragma once
// What each rank holds in data parallelism, by one switch. Layouts, rules and example:
// spec/parallel/data_layout.md.
#include <cstdint>
#include <string_view>

#include "spec/parallel/mesh.hpp"

namespace assay::spec {

enum class DataParallel { replicate, zero1, shard, hybrid };
/// "replicate", "zero1", "shard", "hybrid".
std::string_view to_string(DataParallel data);

struct Layout {
  DataParallel data = DataParallel::replicate;
  std::int64_t ranks = 1;        ///< state ranks: hold one part of the state, or a shard of it
  std::int64_t shard_ranks = 1;  ///< of them, neighbours that hold one copy of the state between them

  /// Those that read sequences of their own: all of them, as long as none shares a sequence.
  std::int64_t batch_ranks() const { return ranks; }
  std::int64_t replicas() const { return ranks / shard_ranks; }  ///< copies of the optimizer state
  bool shards_state() const { return shard_ranks > 1; }
  /// Whether weights and gradients are sharded as well, and gathered block by block.
  bool shards_weights() const { return shard_ranks > 1 && data != DataParallel::zero1; }
  bool operator==(const Layout&) const = default;
};

/// The layout of `ranks` data-parallel ranks. `shard_ranks` counts for hybrid alone, where 0 stands for
/// `ranks_per_host` (0: hosts have different numbers of ranks). Errors: SpecError data_layout_c1..c3.
Layout layout_of(DataParallel data, std::int64_t ranks, std::int64_t shard_ranks = 0,
                 std::int64_t ranks_per_host = 0);

/// dp_replicate = replicas, dp_shard = shard_ranks, tp = tensor_ranks.
Mesh mesh_of(const Layout& layout, std::int64_t tensor_ranks = 1);

}  // namespace assay::spec
