#include "impl/params/layouts/replicated_parameters.hpp"

#include <ATen/ATen.h>

namespace assay::impl {

ReplicatedParameters::ReplicatedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                           Communicator& communicator, at::ScalarType wire)
    : LocalParameters(buffers, model),
      reduction_(communicator, wire, buffers.gradients, buffers.partition.largest_block()),
      non_finite_(buffers.inventory) {}

void ReplicatedParameters::begin_backward(bool last_micro_batch) { reduce_when_ready_ = last_micro_batch; }

void ReplicatedParameters::gradients_ready(std::int64_t block) {
  if (!reduce_when_ready_) return;
  const at::Tensor gradient = block_of(buffers().gradients, block);
  non_finite_.search(block, gradient);
  reduction_.begin_all_reduce(gradient);
}

}  // namespace assay::impl
