#pragma once
#include "impl/parallel/launch.hpp"

namespace assay::impl {

/// Ranks that meet in a key-value store which rank 0 serves over TCP, as torchrun's do: texts, barriers, and
/// sums of a few numbers. Meant for what GPU ranks agree on beside NCCL: tensors of more than a few thousand
/// elements are refused. Errors: UserError(peer_lost) when a rank does not come within the store's time
/// limit.
std::unique_ptr<Communicator> make_store_communicator(const Launch& launch);

}  // namespace assay::impl
