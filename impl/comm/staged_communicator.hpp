#pragma once
#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// For tests: ranks that may share one GPU, which NCCL refuses. What lies on the type of `device` is copied
/// to host memory (pinned beside a GPU) when a collective begins, goes through `host`, and is copied back to
/// where it belongs when its ticket is waited for, both in the current stream; the thread waits for the copy
/// to the host. Other tensors and texts go through `host` as they are. Errors: UserError(usage) while a CUDA
/// graph is captured, which cannot hold a call of the host.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host, at::Device device);

/// Whether this process's environment asks for the staged communicator between GPUs:
/// ASSAY_COMMUNICATOR=staged; NCCL where it is unset, empty or "nccl". For tests only. Errors:
/// AgreedError(usage) for another value.
bool staged_is_wanted();

}  // namespace assay::impl
