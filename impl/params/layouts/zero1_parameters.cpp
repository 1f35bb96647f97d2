#include "impl/params/layouts/zero1_parameters.hpp"

#include <ATen/ATen.h>

namespace assay::impl {

Zero1Parameters::Zero1Parameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                 Communicator& shard, at::ScalarType wire)
    : LocalParameters(buffers, model),
      tied_(model.tied_embeddings),
      shard_(shard),
      reduction_(shard, wire, buffers.gradients, buffers.partition.largest_block()),
      non_finite_(buffers.inventory),
      gathers_(static_cast<std::size_t>(buffers.inventory.blocks)) {}

void Zero1Parameters::wait_for(std::int64_t block) {
  auto& ticket = gathers_.at(static_cast<std::size_t>(block));
  if (ticket != 0) shard_.wait(std::exchange(ticket, 0));
}

const BlockWeights& Zero1Parameters::acquire(std::int64_t block, Weights as) {
  wait_for(block);
  if (tied_ && block + 1 == buffers().inventory.blocks) wait_for(0);
  return LocalParameters::acquire(block, as);
}

void Zero1Parameters::begin_backward(bool last_micro_batch) { reduce_when_ready_ = last_micro_batch; }

void Zero1Parameters::gradients_ready(std::int64_t block) {
  if (!reduce_when_ready_) return;
  const at::Tensor gradient = block_of(buffers().gradients, block);
  non_finite_.search(block, gradient);
  reduction_.begin_reduce_scatter(gradient);
}

void Zero1Parameters::all_gather() {
  for (std::int64_t block = 0; block < buffers().inventory.blocks; ++block) {
    const at::Tensor whole = block_of(buffers().weights, block);
    if (whole.numel() == 0) continue;
    gathers_[static_cast<std::size_t>(block)] =
        shard_.begin_all_gather(owned(buffers(), buffers().weights, block), whole);
  }
}

at::Tensor Zero1Parameters::sum_of_squares() {
  at::Tensor sum = owned_sum_of_squares(buffers());
  shard_.all_reduce_sum(sum);
  return sum;
}

void Zero1Parameters::weights_changed() { gather(buffers().gains, shard_); }

void Zero1Parameters::settle_weights() {
  for (std::int64_t block = 0; block < buffers().inventory.blocks; ++block) wait_for(block);
}

}  // namespace assay::impl
