#pragma once
#include "impl/params/gradient_reduction.hpp"
#include "impl/params/layouts/local_parameters.hpp"
#include "impl/params/non_finite_gradient.hpp"

namespace assay::impl {

/// Data parallel: every rank holds all parameters; gradients are summed over ranks once per optimizer step,
/// block by block, each as soon as the last micro-batch's backward has left it. The loss is normalised by the
/// global count of valid tokens, so the sum over ranks is the gradient, with no division after it.
class ReplicatedParameters final : public LocalParameters {
 public:
  /// `wire`: dtype in which gradients are summed.
  ReplicatedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                       Communicator& communicator, at::ScalarType wire);

  void begin_backward(bool last_micro_batch) override;
  void gradients_ready(std::int64_t block) override;
  void all_reduce() override { reduction_.finish_all(); }
  void begin_search() override { non_finite_.begin(); }
  std::string end_search() override { return non_finite_.end(); }

 private:
  GradientReduction reduction_;
  NonFiniteGradient non_finite_;
  bool reduce_when_ready_ = false;
};

}  // namespace assay::impl
