#pragma once
#include "impl/parallel/communicator.hpp"
#include "impl/parallel/local_parameters.hpp"

namespace assay::impl {

/// Data parallel: every rank holds all parameters; gradients are summed over ranks once per optimizer step,
/// block by block, each as soon as the last micro-batch's backward has left it. The loss is normalised by the
/// global count of valid tokens, so the sum over ranks is the gradient, with no division after it.
class ReplicatedParameters final : public LocalParameters {
 public:
  ReplicatedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                       Communicator& communicator);

  /// Called before the backward of each micro-batch; the last one of the step starts the reductions.
  void begin_backward(bool last_micro_batch);
  void gradients_ready(std::int64_t block) override;

  /// The first parameter whose gradient was not finite on this rank before the reduction spread it to all;
  /// empty if none. Filled while the reductions start, so that the rank at fault can still be told.
  const std::string& non_finite_gradient() const { return non_finite_gradient_; }

 private:
  const ParameterBuffers& buffers_;
  Communicator& communicator_;
  bool reduce_when_ready_ = false;
  std::string non_finite_gradient_;
};

}  // namespace assay::impl
