#pragma once
// The interface of a layout for the executor, beside the four calls of the model
// (impl/model/parameter_access.hpp). The list of actions (spec/schedule/actions.hpp) says when each is
// called.
#include <string>

#include "impl/model/parameter_access.hpp"

namespace assay::impl {

class ParameterLayout : public ParameterAccess {
 public:
  /// Before the first micro-batch of a step: discards the gradients of the step before. If `first` starts, a
  /// block's first GEMM of the step overwrites its gradient, and only the entries that no GEMM writes are
  /// zeroed here. If it continues, all is zeroed and every GEMM adds, so that one captured CUDA graph can be
  /// replayed for each micro-batch.
  virtual void begin_step(linear::GradientSum first) = 0;
  /// Before the forward of each micro-batch.
  virtual void begin_forward() {}
  /// Before the backward of each micro-batch; the last one of a step completes the gradients.
  virtual void begin_backward(bool last_micro_batch) = 0;

  /// These wait for the reductions that gradients_ready began, as Communicator::wait does.
  virtual void all_reduce() {}
  virtual void reduce_scatter() {}
  /// Begins to bring the updated weights to every rank; acquire waits for them.
  virtual void all_gather() {}

  /// Sum of squares of the gradient, summed over ranks, each element once: fp64 scalar on the model's device.
  /// Collective; after the reductions.
  virtual at::Tensor sum_of_squares() = 0;

  /// The weights have changed, by an update or a load: weights that were gathered before are stale.
  virtual void weights_changed() {}
  /// Waits for every all-gather that has begun, as Communicator::wait does: the weights may be read from
  /// their buffer.
  virtual void settle_weights() {}

  /// Before a step is run again whose sums over ranks are not finite: this rank's gradients are searched
  /// before they are reduced.
  virtual void begin_search() {}
  /// Ends the search: the first parameter whose gradient was not finite on this rank; empty if none was.
  virtual std::string end_search() { return ""; }
  /// The first parameter whose gradient, summed over ranks, is not finite in what this rank holds.
  virtual std::string non_finite_sum() const = 0;
};

}  // namespace assay::impl
