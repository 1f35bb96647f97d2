#pragma once
// What the trainer's libraries say about themselves and the GPUs they see, for `assay doctor`.
#include <string>

namespace assay::impl::run {

/// One JSON object: versions "torch", "cuda_runtime", "cuda_driver", "cudnn", "nccl" (texts; absent
/// when unknown), "cuda_error" (why CUDA sees no device; absent when it does), "devices", a list of {name,
/// memory_bytes, compute_capability, code_runs}, "architectures" (for which GPUs our kernels were compiled)
/// and "gpu_fault" (why the first GPU cannot train; absent when it can). Never fails: a machine without a GPU
/// has an empty list.
std::string probe_json();

}  // namespace assay::impl::run
