#pragma once
// What the executor asks of a layout, beside the four verbs that the model asks for. The list of actions
// (spec/schedule/actions.hpp) says when.
#include <memory>
#include <string>
#include <utility>

#include "impl/model/parameter_access.hpp"

namespace assay::impl {

class ParameterLayout : public ParameterAccess {
 public:
  /// Before the first micro-batch of a step: no gradient of the step before is left. Where `first` starts,
  /// a block's first GEMM of the step starts its sum, and only the rest is zeroed here. Where it
  /// continues, all is zeroed and every GEMM adds: work that is recorded once serves each micro-batch.
  virtual void begin_step(linear::GradientSum first) = 0;
  /// Before the forward of each micro-batch.
  virtual void begin_forward() {}
  /// Before the backward of each micro-batch; the last one of a step completes the gradients.
  virtual void begin_backward(bool last_micro_batch) = 0;

  /// These complete what gradients_ready began (impl/comm/communicator.hpp: for what the stream does
  /// next).
  virtual void all_reduce() {}
  virtual void reduce_scatter() {}
  /// Begins to bring the updated weights to every rank; acquire waits for them.
  virtual void all_gather() {}

  /// Sum of squares of the gradient, summed over ranks, each element once: fp64 scalar on the model's device.
  /// Collective; after the reductions.
  virtual at::Tensor sum_of_squares() = 0;

  /// The weights have changed, by an update or a load: what was gathered before is old.
  virtual void weights_changed() {}
  /// Every gather begun is complete, as by Communicator::wait: the weights may be read as they lie.
  virtual void settle_weights() {}

  /// The first parameter whose gradient was not finite on this rank before the reduction spread it; empty if
  /// none was, or where this layout does not look.
  virtual std::string non_finite_gradient() const { return ""; }
  /// The first parameter whose gradient, summed over ranks, is not finite in what this rank holds.
  virtual std::string non_finite_sum() const = 0;

  /// What lives as long as this: how its weights are gathered (Communicator::gather_by_copies).
  void hold(std::shared_ptr<void> handle) { held_ = std::move(handle); }

 private:
  std::shared_ptr<void> held_;
};

}  // namespace assay::impl
