#pragma once
// The memory of a step, taken from the GPU in one piece before the first step.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace assay::impl {

/// Takes `size` [B] from the GPU and leaves them to the caching allocator, which cuts the tensors of steps
/// from them: a step then asks the device for no large memory, and where another process holds too much, the
/// error comes before the first step instead of in the middle of one. Resets the peak that the allocator
/// reports. Does nothing on the CPU, whose allocator has no such memory. `least`: what will do where `size`
/// is not free; steps then ask the device for the rest. Errors: UserError(usage) with what is free and what
/// to do, where the device does not have so much.
void reserve_step_arena(at::Device device, std::int64_t size, std::int64_t least = INT64_MAX);

}  // namespace assay::impl
