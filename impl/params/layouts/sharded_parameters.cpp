#include "impl/params/layouts/sharded_parameters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "impl/params/optimizer.hpp"

namespace assay::impl {

namespace {
constexpr std::size_t embedding_slot = 2, head_slot = 3;
}

ShardedParameters::ShardedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                     const LayoutGroups::Set& ranks, at::ScalarType wire,
                                     const spec::LinearPrecision& linear)
    : buffers_(buffers),
      tied_(model.tied_embeddings),
      shard_(ranks.state),
      replicas_(ranks.replicas),
      scatter_(shard_, wire, buffers.gradients, buffers.partition.largest_block()),
      reduce_(replicas_, wire, buffers.gradients, buffers.partition.largest_block() / shard_.size()),
      non_finite_(buffers.inventory),
      codes_(buffers, linear, shard_) {
  lay_out(model);
}

/// A tied head reads the embedding and its own norm, so both are there at once; an untied one takes the
/// embedding's slot.
ShardedParameters::Slot& ShardedParameters::slot_of(std::int64_t block) {
  if (block == 0) return slots_[embedding_slot];
  if (is_head(block)) return slots_[tied_ ? head_slot : embedding_slot];
  return slots_[static_cast<std::size_t>(block % 2)];
}

void ShardedParameters::lay_out(const spec::ModelSpec& model) {
  const spec::Partition& partition = buffers_.partition;
  slots_.resize(head_slot + 1);
  // One tensor for all slots, so that views of a block may reach into another's (a tied head).
  std::vector<std::int64_t> sizes(slots_.size()), begins(slots_.size());
  const auto number = [&](std::int64_t block) {
    return static_cast<std::size_t>(&slot_of(block) - slots_.data());
  };
  for (std::int64_t b = 0; b < partition.inventory.blocks; ++b)
    sizes[number(b)] = std::max(sizes[number(b)], partition.block_size(b));
  std::int64_t all = 0;
  for (std::size_t p = 0; p < sizes.size(); ++p) begins[p] = all, all += sizes[p];
  const at::Tensor weights = at::zeros({all}, buffers_.weights.options());
  const at::Tensor gradients = at::zeros({all}, buffers_.gradients.options());
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    slots_[p].weights = weights.narrow(0, begins[p], sizes[p]);
    slots_[p].gradients = gradients.narrow(0, begins[p], sizes[p]);
  }
  spec::Inventory in_slots = partition.inventory;
  for (spec::Parameter& parameter : in_slots.parameters)
    parameter.offset +=
        begins[number(parameter.block)] - partition.blocks[static_cast<std::size_t>(parameter.block)].begin;
  for (std::int64_t b = 0; b < in_slots.blocks; ++b) {
    weights_.push_back(weight_views(buffers_, weights, in_slots, model, b));
    codes_.lay_out(b, slot_of(b).weights);
    gradients_.push_back(views(gradients, in_slots, model, b));
    const std::int64_t begin = begins[number(b)], end = begin + partition.block_size(b);
    // The head's GEMM runs in forward, of one or of several micro-batches before the first backward. Only a
    // decoder block's gradients begin and end within one backward, so that its GEMMs can overwrite.
    zeroed_.push_back(of_decoder(b) ? beside_gemms(gradients, begin, end, in_slots, b, tied_)
                                    : std::vector{gradients.narrow(0, begin, end - begin)});
  }
}

void ShardedParameters::gather(std::int64_t block, Weights as) {
  Slot& slot = slot_of(block);
  const bool codes = as_codes(block, as);
  if (slot.holds == block && slot.codes == codes) return;
  if (slot.users > 0)
    throw std::logic_error("block " + std::to_string(block) + " would take the slot of block " +
                           std::to_string(slot.holds) + ", which is in use");
  if (slot.gather != 0) shard_.wait(slot.gather);  // of another block: it still writes here
  slot.holds = block;
  slot.codes = codes;
  slot.gather = 0;
  if (buffers_.partition.block_size(block) == 0) return;
  slot.gather =
      codes ? codes_.begin_gather(block)
            : shard_.begin_all_gather(owned(buffers_, buffers_.weights, block),
                                      slot.weights.narrow(0, 0, buffers_.partition.block_size(block)));
}

void ShardedParameters::wait_for(std::int64_t block, Weights as) {
  gather(block, as);
  Slot& slot = slot_of(block);
  if (slot.gather != 0) shard_.wait(std::exchange(slot.gather, 0));
}

const BlockWeights& ShardedParameters::acquire(std::int64_t block, Weights as) {
  wait_for(block, as);
  if (tied_ && is_head(block)) wait_for(0, as);
  ++slot_of(block).users;
  prefetch_after(block, as);
  return as_codes(block, as) ? codes_.weights(block) : weights_[static_cast<std::size_t>(block)];
}

void ShardedParameters::release(std::int64_t block) { --slot_of(block).users; }

/// The block that the model will ask for next, while this one computes.
void ShardedParameters::prefetch_after(std::int64_t block, Weights as) {
  if (!backward_) {
    if (!is_head(block)) gather(block + 1, as);
  } else if (block > 1) {
    gather(block - 1, as);
  } else if (block == 1 && !last_) {
    gather(0, as);  // of the next micro-batch; after the last one, weights change first
  }
}

/// A shard sums the gradients of every micro-batch.
void ShardedParameters::begin_step(linear::GradientSum) { zero_gradients(buffers_.gradients); }

/// Makes the block's slot ready to add gradients in.
void ShardedParameters::accumulate(std::int64_t block) {
  Slot& slot = slot_of(block);
  if (slot.accumulates == block) return;
  scatter_.finish(std::exchange(slot.reduction, 0));
  zero_gradients(zeroed_[static_cast<std::size_t>(block)]);
  slot.accumulates = block;
}

BlockGradients ShardedParameters::gradients(std::int64_t block) {
  accumulate(block);
  if (tied_ && is_head(block)) accumulate(0);
  return {gradients_[static_cast<std::size_t>(block)],
          of_decoder(block) ? linear::GradientSum::starts : linear::GradientSum::continues};
}

void ShardedParameters::begin_backward(bool last_micro_batch) {
  backward_ = true;
  last_ = last_micro_batch;
}

void ShardedParameters::gradients_ready(std::int64_t block) {
  accumulate(block);
  Slot& slot = slot_of(block);
  const at::Tensor whole = slot.gradients.narrow(0, 0, buffers_.partition.block_size(block)),
                   total = owned(buffers_, buffers_.gradients, block);
  non_finite_.search(block, whole);
  GradientReduction::Then then;
  if (last_ && replicas_.size() > 1) then = [this, total] { reduce_.begin_all_reduce(total); };
  slot.reduction = scatter_.begin_reduce_scatter_add(whole, total, std::move(then));
  slot.accumulates = -1;
}

/// Waits for the sums of the last micro-batch; those of the others were waited for when their slot was needed
/// again.
void ShardedParameters::reduce_scatter() {
  if (last_) scatter_.finish_all();
}

void ShardedParameters::all_reduce() { reduce_.finish_all(); }

at::Tensor ShardedParameters::sum_of_squares() {
  at::Tensor sum = owned_sum_of_squares(buffers_);
  shard_.all_reduce_sum(sum);
  return sum;
}

void ShardedParameters::weights_changed() {
  for (Slot& slot : slots_) {
    if (slot.gather != 0) shard_.wait(std::exchange(slot.gather, 0));
    slot.holds = -1;
  }
  backward_ = false;
  impl::gather(buffers_.gains, shard_);
  codes_.weights_changed();
}

}  // namespace assay::impl
