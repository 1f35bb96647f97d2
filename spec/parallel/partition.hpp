#pragma once
// Which rank owns which elements of the flat buffers when they are sharded. Definition, rules and example:
// spec/parallel/partition.md.
#include <cstdint>
#include <vector>

#include "spec/model/inventory.hpp"

namespace assay::spec {

/// An inventory whose blocks are padded to `ranks` equal shards each, and where these shards lie.
struct Partition {
  struct Block {
    std::int64_t begin;            ///< in the padded flat buffer [elements]
    std::int64_t shard_size;       ///< of the block on every rank [elements]
    std::int64_t shard_begin;      ///< of the block's shard in a rank's shard buffer [elements]
    std::int64_t canonical_begin;  ///< of the block in the flat buffer without padding [elements]
  };

  Inventory inventory;  ///< offsets in the padded flat buffer; gaps and padding belong to no parameter
  std::int64_t ranks = 1;
  std::vector<Block> blocks;
  std::int64_t shard_size = 0;  ///< elements of one rank over all blocks: inventory.flat_size / ranks

  std::int64_t block_size(std::int64_t block) const;  ///< ranks * its shard_size
  std::int64_t largest_block() const;                 ///< the most elements of a block
  /// The shard of `rank`, in the padded flat buffer. Errors: SpecError partition_c2.
  Inventory::Range owned(std::int64_t block, std::int64_t rank) const;
  /// Every element of `rank` in contiguous runs: one run with one rank, else one run per block.
  struct Run {
    std::int64_t begin;            ///< in the padded flat buffer
    std::int64_t size;             ///< [elements]
    std::int64_t shard_begin;      ///< in the shard buffer
    std::int64_t canonical_begin;  ///< in the flat buffer without padding, the same in every partition
  };
  std::vector<Run> runs(std::int64_t rank) const;
};

/// Of shards [elements]: 128 bytes in bf16, so that vectors of 16 bytes never cross a shard's end.
inline constexpr std::int64_t shard_alignment = 64;

/// Shards are multiples of `alignment` elements. With one rank the inventory is unchanged.
/// Errors: SpecError partition_c1 (ranks outside [1, 2^20], alignment below 1).
Partition partition(Inventory inventory, std::int64_t ranks, std::int64_t alignment = shard_alignment);

}  // namespace assay::spec
