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
    : buffers_(buffers), groups_(groups && groups->layout().shards_state() ? groups : nullptr) {}

GatheredState::~GatheredState() {
  if (!groups_ || groups_->world().rank() != 0) return;
  try {
    agree(no_more);
  } catch (const std::exception&) {
    // A rank is gone: whoever speaks to it next says so.
  }
}

/// The order of rank 0, on every rank of the group.
std::int64_t GatheredState::agree(std::int64_t order) {
  const at::Tensor said = at::full({1}, order, at::kLong);
  groups_->shard().all_reduce_sum(said);
  return said.item<std::int64_t>();
}

void GatheredState::gather(std::int64_t buffer, std::int64_t block) {
  const at::Tensor& flat = buffers_.*gathered.at(static_cast<std::size_t>(buffer));
  block_.reset();  // its memory first
  block_ = at::empty({buffers_.partition.block_size(block)}, flat.options());
  Communicator& shard = groups_->shard();
  shard.wait(shard.begin_all_gather(owned(buffers_, flat, block), block_));
}

at::Tensor GatheredState::values(at::Tensor ParameterBuffers::*buffer, const spec::Parameter& parameter) {
  if (!groups_ || buffers_.whole(buffers_.*buffer)) return view(buffers_.*buffer, parameter);
  std::int64_t number = 0;
  while (gathered.at(static_cast<std::size_t>(number)) != buffer) ++number;
  if (held_buffer_ != number || held_block_ != parameter.block) {
    agree(1 + number * buffers_.inventory.blocks + parameter.block);
    gather(number, parameter.block);
    held_buffer_ = number, held_block_ = parameter.block;
  }
  const auto& range = buffers_.partition.blocks.at(static_cast<std::size_t>(parameter.block));
  return block_.narrow(0, parameter.offset - range.begin, parameter.size).view(parameter.shape);
}

void GatheredState::serve() {
  if (!groups_ || !groups_->with_rank_0()) return;
  while (const std::int64_t order = agree(0))
    gather((order - 1) / buffers_.inventory.blocks, (order - 1) % buffers_.inventory.blocks);
}

}  // namespace assay::impl
