#pragma once
// The parts of a step captured once, and given to the device again at every later step: CUDA graphs.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace assay::impl::run {

/// What is captured, each by itself, so that each keeps its place in the clock of phases. Forward and
/// backward are of one micro-batch, and serve all of them.
enum class StepPart { forward, backward, clip, update };
inline constexpr std::size_t step_parts = 4;

/// Captures the work that calls give to a device. Captured work reads and writes the memory that it was
/// captured with, so all that changes from step to step is in tensors that stay in place
/// (impl/step/executor.hpp).
class StepCapture {
 public:
  virtual ~StepCapture() = default;

  /// Runs `step`, in which the calls below are made, where work can be captured.
  virtual void on_its_stream(const std::function<void()>& step) = 0;
  /// Whether the calls of a step are by now those of every later one, so that they may be captured.
  virtual bool ready() const = 0;
  /// Calls `work`, and keeps what it gives to the device instead of running it. Tensors that it makes live in
  /// memory that the parts share: they are replayed in the order in which they were captured. Errors: those
  /// of `work`; c10::Error where the device cannot capture it. After one of them only `forget` is of use.
  virtual void capture(StepPart part, const std::function<void()>& work) = 0;
  /// Runs what was captured, on what its tensors hold now.
  virtual void replay(StepPart part) = 0;
  /// Drops what was captured, and its memory.
  virtual void forget() = 0;
  /// "2 + 3 + 1 + 1 nodes": size of what was captured, for the log.
  virtual std::string size() const = 0;
};

/// By CUDA graphs, on a stream of its own, as CUDA captures no default stream.
std::unique_ptr<StepCapture> make_cuda_graphs(at::Device device);

/// Why compute.cuda_graph=on leaves the steps of this run uncaptured; nothing where they are captured, or
/// where it was not asked for (`wanted` false). Errors: UserError(usage) on the CPU.
std::optional<std::string> reason_against_graph(bool wanted, at::Device device, std::int64_t ranks);

}  // namespace assay::impl::run
