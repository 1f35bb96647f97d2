#include "impl/params/gathered_state.hpp"

#include <ATen/ATen.h>

#include <array>
#include <stdexcept>

#include "impl/model/views.hpp"

namespace assay::impl {

namespace {
constexpr std::array<at::Tensor ParameterBuffers::*, 3> gathered = {
    &ParameterBuffers::master, &ParameterBuffers::moment1, &ParameterBuffers::moment2};
constexpr std::int64_t no_more = 0;
}  // namespace

GatheredState::GatheredState(const ParameterBuffers& buffers, LayoutGroups* groups)
    : buffers_(buffers),
      groups_(groups && (groups->layout().shards_state() || groups->tensor().size() > 1) ? groups : nullptr) {
}

GatheredState::~GatheredState() {
  if (!groups_ || groups_->all().rank() != 0) return;
  try {
    agree(no_more);
  } catch (const std::exception&) {
    // A rank is gone: whoever speaks to it next says so.
  }
}

/// The order of rank 0, on every rank that serves: by the leaders, who are the tensor ranks of data rank 0,
/// to the ranks of their shard groups.
std::int64_t GatheredState::agree(std::int64_t order) {
  for (Communicator* group : {leads() ? &groups_->tensor() : nullptr, &groups_->shard()}) {
    if (!group || group->size() == 1) continue;
    const at::Tensor said = at::full({1}, group->rank() == 0 ? order : 0, at::kLong);
    group->all_reduce_sum(said);
    order = said.item<std::int64_t>();
  }
  return order;
}

at::Tensor GatheredState::own_values(std::int64_t order) {
  const auto parameters = static_cast<std::int64_t>(buffers_.inventory.parameters.size());
  const std::int64_t number = (order - 1) / parameters;
  const spec::Parameter& own =
      buffers_.inventory.parameters[static_cast<std::size_t>((order - 1) % parameters)];
  const at::Tensor& flat = buffers_.*gathered.at(static_cast<std::size_t>(number));
  if (buffers_.whole(flat)) return view(flat, own);
  if (held_buffer_ != number || held_block_ != own.block) {
    block_.reset();  // its memory first
    block_ = at::empty({buffers_.partition.block_size(own.block)}, flat.options());
    Communicator& shard = groups_->shard();
    shard.wait(shard.begin_all_gather(owned(buffers_, flat, own.block), block_));
    held_buffer_ = number, held_block_ = own.block;
  }
  const auto& range = buffers_.partition.blocks.at(static_cast<std::size_t>(own.block));
  return block_.narrow(0, own.offset - range.begin, own.size).view(own.shape);
}

at::Tensor GatheredState::of_all_tensor_ranks(const at::Tensor& own, std::size_t index) {
  Communicator& tensor = groups_->tensor();
  if (tensor.size() == 1) return own;
  const at::Tensor parts = at::empty({tensor.size() * own.numel()}, own.options());
  tensor.wait(tensor.begin_all_gather(own.contiguous().view({-1}), parts));
  if (tensor.rank() != 0) return {};
  const spec::Parameter& whole = buffers_.model.parameters[index];
  const at::Tensor values = at::empty(whole.shape, own.options().device(at::kCPU));
  for (int rank = 0; rank < tensor.size(); ++rank) {
    const spec::Placement placement =
        spec::placement(whole, buffers_.inventory.parameters[index], {tensor.size(), rank});
    const at::Tensor part = parts.narrow(0, rank * own.numel(), own.numel()).view(own.sizes());
    own_slice(placement, values)
        .copy_(placement.dimension < 0 ? part : part.narrow(placement.dimension, 0, placement.count));
  }
  return values;
}

at::Tensor GatheredState::values(at::Tensor ParameterBuffers::*buffer, std::size_t index) {
  if (buffer == &ParameterBuffers::master)
    if (const at::Tensor bias = router_bias_of(buffers_, index); bias.defined()) return bias;
  if (!groups_) return view(buffers_.*buffer, buffers_.inventory.parameters.at(index));
  std::int64_t number = 0;
  while (gathered.at(static_cast<std::size_t>(number)) != buffer) ++number;
  const std::int64_t order = 1 + number * static_cast<std::int64_t>(buffers_.inventory.parameters.size()) +
                             static_cast<std::int64_t>(index);
  const spec::Parameter& own = buffers_.inventory.parameters.at(index);
  const bool here = buffers_.whole(buffers_.*buffer) || (held_buffer_ == number && held_block_ == own.block);
  if (groups_->tensor().size() > 1 || !here) agree(order);
  return of_all_tensor_ranks(own_values(order), index);
}

void GatheredState::serve() {
  if (!groups_ || !groups_->with_rank_0()) return;
  while (const std::int64_t order = agree(0)) {
    const at::Tensor own = own_values(order);
    if (leads())
      of_all_tensor_ranks(own, static_cast<std::size_t>(order - 1) % buffers_.inventory.parameters.size());
  }
}

}  // namespace assay::impl
