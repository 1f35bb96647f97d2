#pragma once
#include <string>

#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Hexadecimal hash of a flat tensor's bits: XXH3-128 of the sums over rows and over columns of its elements
/// as integers, taken where the tensor is. Any one change of bits changes it.
std::string bits_hash(const at::Tensor& flat);

struct ReplicaCheck {
  std::string hash;  ///< of the weights that most copies hold: one hash, or of shards one after the other
  std::string odd;  ///< names the ranks whose copy differs from the most; empty: all copies are the same bits
};

/// Compares, bit for bit, the copies that must be equal in this layout: of each set whole weights, or a shard
/// on the ranks that hold the same shard; and what tensor ranks share. Collective, the same result on every
/// rank.
ReplicaCheck compare_replicas(const ParameterBuffers& buffers, LayoutGroups& groups);

}  // namespace assay::impl
