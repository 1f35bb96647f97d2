#include "impl/params/step_arena.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl {

void reserve_step_arena(at::Device device, std::int64_t size, std::int64_t least) {
  if (!device.is_cuda() || size <= 0) return;
  const c10::cuda::CUDAGuard guard(device);
  // What the cache holds in smaller pieces would stay beside the arena, unused.
  c10::cuda::CUDACachingAllocator::emptyCache();
  try {
    at::empty({size}, at::TensorOptions(device).dtype(at::kByte));
  } catch (const c10::OutOfMemoryError&) {
    if (least < size) return reserve_step_arena(device, least, least);
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw UserError(
        ExitCode::usage,
        "GPU " + std::to_string(device.index()) + ": a step's tensors are planned to take " +
            spec::bytes(size) + " beside weights and states, and " +
            spec::bytes(static_cast<std::int64_t>(free)) + " of its " +
            spec::bytes(static_cast<std::int64_t>(total)) +
            " are free. The rest is taken by other processes (nvidia-smi names them) or by this one's CUDA "
            "context and NCCL; end those or take another GPU by CUDA_VISIBLE_DEVICES, or lower batch.micro "
            "(the sum over the batch stays the same) or set memory.recompute=block");
  }
  c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

}  // namespace assay::impl
