#pragma once
// How far a rank's GPU has come, as the host can see without asking it: a GPU that hangs answers nothing.
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace assay::impl {

/// Counts the collectives between GPUs that the GPU was given, and those that it has come to: it writes their
/// number into memory of the host once it is done with all that the current stream was given ahead of them.
class GpuProgress {
 public:
  /// Errors: c10::Error where the host has no memory that the GPU can write.
  explicit GpuProgress(at::Device device);

  /// A collective is begun next, from the current stream. No call waits for the GPU. Errors:
  /// std::runtime_error where the stream cannot write.
  void begin();
  /// Of those that were begun, how many the GPU has come to. From any thread.
  std::int64_t reached() const;

 private:
  const at::Device device_;
  std::atomic<std::int64_t> given_{0};
  const std::shared_ptr<std::atomic<std::uint32_t>> word_;  ///< reached, but for whole turns of 32 bits
};

}  // namespace assay::impl
