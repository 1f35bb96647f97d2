#pragma once
// The progress of a rank's GPU, readable without a call to the GPU: one that hangs does not answer.
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace assay::impl {

/// Counts the collectives between GPUs that were enqueued, and those that the GPU has reached: the GPU writes
/// their number into memory of the host once it has finished the work ahead of them in the current stream.
class GpuProgress {
 public:
  /// Errors: c10::Error where the host has no memory that the GPU can write.
  explicit GpuProgress(at::Device device);

  /// The next call begins a collective, from the current stream. Does not wait for the GPU. Errors:
  /// std::runtime_error where the stream cannot write.
  void begin();
  /// How many of the begun collectives the GPU has reached. From any thread.
  std::int64_t reached() const;

 private:
  const at::Device device_;
  std::atomic<std::int64_t> given_{0};
  const std::shared_ptr<std::atomic<std::uint32_t>> word_;  ///< reached, but for whole turns of 32 bits
};

}  // namespace assay::impl
