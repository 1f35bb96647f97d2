#pragma once
// The batches of a step on the trainer's device, copied while earlier steps run.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>
#include <vector>

#include "impl/data/loader.hpp"
#include "impl/model/token_batch.hpp"

namespace assay::impl::run {

/// On a GPU: a ring of slots, each a page-locked host buffer and a device buffer. The loader's thread fills
/// the next slot and starts its copy on a stream of its own; the trainer's stream waits for that copy, not
/// the host. On the CPU: tensors made when they are taken. Two threads: `stage` is called by the loader's,
/// the rest by the trainer's.
class DeviceStaging {
 public:
  /// `prefetch`: steps that the loader reads ahead at most.
  DeviceStaging(at::Device device, std::int64_t prefetch);

  /// Starts the copy of a step. Steps come in order.
  void stage(const data::StepBatches& batches);

  /// The micro-batches of a step that was staged, steps in order. They may be used until the next call: work
  /// given to the current stream before that call is finished before their memory is used again.
  std::vector<TokenBatch> take(const data::StepBatches& batches);

 private:
  struct Slot {
    at::Tensor host, device;     ///< [words] int64; page-locked, and on the GPU
    at::cuda::CUDAEvent copied;  ///< recorded in the staging stream behind the copy
    at::cuda::CUDAEvent used;    ///< recorded in the trainer's stream behind the work on the slot
  };
  Slot& slot_of(std::int64_t step) {
    return slots_[static_cast<std::size_t>(step % static_cast<std::int64_t>(slots_.size()))];
  }

  const at::Device device_;
  std::vector<Slot> slots_;
  std::optional<c10::cuda::CUDAStream> stream_;  ///< of the copies
  std::optional<std::int64_t> taken_;            ///< the step whose slot the trainer works on
};

}  // namespace assay::impl::run
