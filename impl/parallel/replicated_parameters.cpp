#include "impl/parallel/replicated_parameters.hpp"

#include <ATen/ATen.h>

namespace assay::impl {

ReplicatedParameters::ReplicatedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                           Communicator& communicator)
    : LocalParameters(buffers, model), buffers_(buffers), communicator_(communicator) {}

void ReplicatedParameters::begin_backward(bool last_micro_batch) {
  reduce_when_ready_ = last_micro_batch;
  non_finite_gradient_.clear();
}

void ReplicatedParameters::gradients_ready(std::int64_t block) {
  if (!reduce_when_ready_) return;
  const auto range = buffers_.inventory.block_range(block);
  if (communicator_.size() == 1) return;
  if (non_finite_gradient_.empty()) non_finite_gradient_ = first_non_finite_gradient(buffers_, range);
  communicator_.begin_all_reduce_sum(buffers_.gradients.narrow(0, range.begin, range.end - range.begin));
}

}  // namespace assay::impl
