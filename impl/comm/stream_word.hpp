#pragma once
// A word in memory of the host that a stream writes between the work it is given: how far a GPU has come is
// readable without a call to it, as one that hangs does not answer.
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace assay::impl {

class StreamWord {
 public:
  /// Holds 0. Errors: c10::Error where the host has no memory that the GPU can write.
  explicit StreamWord(at::Device device);

  /// It holds `value` once the GPU is done with what the current stream was given before. Does not wait for
  /// the GPU. Errors: std::runtime_error with the driver's code.
  void write(std::uint32_t value);
  /// What the GPU has written last. From any thread.
  std::uint32_t read() const { return *word_; }

 private:
  const at::Device device_;
  const std::shared_ptr<std::atomic<std::uint32_t>> word_;
};

}  // namespace assay::impl
