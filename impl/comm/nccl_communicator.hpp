#pragma once
#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// NCCL between the GPUs of the ranks of `control`, each with its own `device`, which is the current one from
/// here on. CUDA tensors go through NCCL in a stream of its own, ordered with the current stream by events:
/// no call waits for the GPU but `settle`. CPU tensors and texts go through `control`, which it owns. Errors:
/// UserError(peer_lost) with NCCL's own words when a call or a collective fails, or when a collective is not
/// done after five minutes.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> control,
                                                     at::Device device);

}  // namespace assay::impl
