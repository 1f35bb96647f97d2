#include "spec/parallel/partition.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "spec/error.hpp"

namespace assay::spec {

std::int64_t Partition::block_size(std::int64_t block) const {
  return ranks * blocks.at(static_cast<std::size_t>(block)).shard_size;
}

std::int64_t Partition::largest_block() const {
  std::int64_t largest = 0;
  for (const Block& block : blocks) largest = std::max(largest, ranks * block.shard_size);
  return largest;
}

Inventory::Range Partition::owned(std::int64_t block, std::int64_t rank) const {
  // partition_c2
  require(block >= 0 && block < inventory.blocks && rank >= 0 && rank < ranks, "partition_c2", [&] {
    return "block " + std::to_string(block) + " of " + std::to_string(inventory.blocks) + ", rank " +
           std::to_string(rank) + " of " + std::to_string(ranks);
  });
  const Block& b = blocks[static_cast<std::size_t>(block)];
  return {b.begin + rank * b.shard_size, b.begin + (rank + 1) * b.shard_size};
}

std::vector<Partition::Run> Partition::runs(std::int64_t rank) const {
  if (ranks == 1) return {{0, shard_size, 0, 0}};
  std::vector<Run> runs;
  for (std::int64_t b = 0; b < inventory.blocks; ++b) {
    const Inventory::Range range = owned(b, rank);
    const Block& block = blocks[static_cast<std::size_t>(b)];
    if (block.shard_size > 0)
      runs.push_back({range.begin, block.shard_size, block.shard_begin,
                      block.canonical_begin + (range.begin - block.begin)});
  }
  return runs;
}

Partition partition(Inventory inventory, std::int64_t ranks, std::int64_t alignment) {
  // partition_c1
  require(ranks >= 1 && ranks <= (1 << 20) && alignment >= 1 && alignment <= (1 << 20), "partition_c1",
          [&] { return "ranks=" + std::to_string(ranks) + ", alignment=" + std::to_string(alignment); });
  Partition out;
  out.ranks = ranks;
  for (std::int64_t b = 0; b < inventory.blocks; ++b) {
    const Inventory::Range range = inventory.block_range(b);
    const std::int64_t size = range.end - range.begin, unit = ranks * alignment;
    const std::int64_t shard = ranks == 1 ? size : (size + unit - 1) / unit * alignment;
    out.blocks.push_back({ranks * out.shard_size, shard, out.shard_size, range.begin});
    out.shard_size += shard;
  }
  out.inventory = std::move(inventory);
  for (Parameter& parameter : out.inventory.parameters) {
    const Partition::Block& block = out.blocks[static_cast<std::size_t>(parameter.block)];
    parameter.offset += block.begin - block.canonical_begin;
  }
  out.inventory.flat_size = ranks * out.shard_size;
  return out;
}

}  // namespace assay::spec
