#include "impl/params/gathered_state.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "impl/model/views.hpp"
#include "impl/params/slices.hpp"

namespace assay::impl {

namespace {
constexpr std::array<at::Tensor ParameterBuffers::*, 3> gathered = {
    &ParameterBuffers::master, &ParameterBuffers::moment1, &ParameterBuffers::moment2};
constexpr std::int64_t no_more = 0;
}  // namespace

GatheredState::GatheredState(const ParameterBuffers& buffers, LayoutGroups* groups)
    : buffers_(buffers),
      groups_(groups && (groups->copy().size() > 1 || groups->tensor().size() > 1) ? groups : nullptr),
      held_(buffers.model.parameters.size()) {
  for (const ParameterBuffers* each : {&buffers, static_cast<const ParameterBuffers*>(buffers.experts.get())})
    for (std::size_t i = 0; each && i < each->placements.size(); ++i)
      held_[each->placements[i].number] = {each, i};
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
/// to the ranks of their copies.
std::int64_t GatheredState::agree(std::int64_t order) {
  for (Communicator* group : {leads() ? &groups_->tensor() : nullptr, &groups_->copy()}) {
    if (!group || group->size() == 1) continue;
    const at::Tensor said = at::full({1}, group->rank() == 0 ? order : 0, at::kLong);
    group->all_reduce_sum(said);
    order = said.item<std::int64_t>();
  }
  return order;
}

bool GatheredState::at_hand(const Held& held, std::int64_t number) const {
  if (!held.buffers) return false;
  return held.buffers->whole(held.buffers->*gathered.at(static_cast<std::size_t>(number))) ||
         (block_of_ == held.buffers && block_buffer_ == number && block_number_ == held.parameter().block);
}

at::Tensor GatheredState::of_shards(const Held& held, std::int64_t number) {
  const ParameterBuffers& buffers = *held.buffers;
  const spec::Parameter& own = held.parameter();
  const at::Tensor& flat = buffers.*gathered.at(static_cast<std::size_t>(number));
  if (buffers.whole(flat)) return view(flat, own);
  if (!at_hand(held, number)) {
    block_.reset();  // its memory first
    block_ = at::empty({buffers.partition.block_size(own.block)}, flat.options());
    Communicator& shard = (&buffers == &buffers_ ? groups_ : groups_->experts())->shard();
    shard.wait(shard.begin_all_gather(owned(buffers, flat, own.block), block_));
    block_of_ = &buffers, block_buffer_ = number, block_number_ = own.block;
  }
  const auto& range = buffers.partition.blocks.at(static_cast<std::size_t>(own.block));
  return block_.narrow(0, own.offset - range.begin, own.size).view(own.shape);
}

at::Tensor GatheredState::own_values(std::int64_t order) {
  const auto parameters = static_cast<std::int64_t>(buffers_.model.parameters.size());
  const std::int64_t number = (order - 1) / parameters;
  const auto index = static_cast<std::size_t>((order - 1) % parameters);
  const Held& held = held_[index];
  const at::Tensor values = held.buffers ? of_shards(held, number) : at::Tensor();
  if (!buffers_.experts) return values;
  // Of the first expert group of a copy, the rank that holds the expert sends it to the first.
  Communicator& expert = groups_->expert();
  const spec::Parameter& parameter = buffers_.model.parameters[index];
  const std::int64_t holder =
      std::max<std::int64_t>(0, spec::routed_expert(parameter)) / buffers_.experts_of_rank;
  if (holder == 0 || groups_->copy().rank() >= expert.size()) return values;
  if (expert.rank() == holder) expert.wait(expert.begin_send(values.contiguous(), 0));
  if (expert.rank() != 0) return values;
  const at::Tensor received = at::empty(parameter.shape, buffers_.master.options());
  expert.wait(expert.begin_receive(received, static_cast<int>(holder)));
  return received;
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
  const std::int64_t order = 1 + number * static_cast<std::int64_t>(buffers_.model.parameters.size()) +
                             static_cast<std::int64_t>(index);
  if (groups_->tensor().size() > 1 || !at_hand(held_.at(index), number)) agree(order);
  return of_all_tensor_ranks(own_values(order), index);
}

void GatheredState::serve() {
  if (!groups_ || !groups_->with_rank_0()) return;
  while (const std::int64_t order = agree(0)) {
    const at::Tensor own = own_values(order);
    if (leads())
      of_all_tensor_ranks(own, static_cast<std::size_t>(order - 1) % buffers_.model.parameters.size());
  }
}

}  // namespace assay::impl
