#pragma once
#include <chrono>

#include "impl/comm/launch.hpp"

namespace assay::impl {

/// Ranks that meet in a key-value store which rank 0 serves over TCP, as torchrun's do: texts, barriers, and
/// sums of a few numbers. Meant for what GPU ranks agree on beside NCCL: tensors of more than a few thousand
/// elements are refused. All ranks meet before any goes on. Errors: UserError(peer_lost) that names the ranks
/// that have not come within `patience`, or says where rank 0 was looked for; UserError(usage) where a rank
/// counts the ranks differently, or comes twice: two launchers use one address. `in_run`: how long a rank is
/// waited for afterwards, until rely_on_watch.
std::unique_ptr<Communicator> make_store_communicator(const Launch& launch,
                                                      std::chrono::seconds patience = std::chrono::minutes(2),
                                                      std::chrono::seconds in_run = std::chrono::minutes(10));

}  // namespace assay::impl
