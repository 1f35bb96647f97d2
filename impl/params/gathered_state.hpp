#pragma once
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// The whole state on rank 0: gathered block by block from the shards of a data rank's copy, and parameter by
/// parameter from the tensor ranks, put together on the host. At most one block of one buffer is gathered at
/// a time, and the parts of one parameter. The other ranks of those groups serve the values that rank 0 asks
/// for, until rank 0's object is destroyed. Ranks that hold copies do nothing.
class GatheredState {
 public:
  /// `groups` may be null: everything is whole on every rank. Both must outlive this.
  GatheredState(const ParameterBuffers& buffers, LayoutGroups* groups);
  ~GatheredState();
  GatheredState(const GatheredState&) = delete;
  GatheredState& operator=(const GatheredState&) = delete;

  /// On rank 0: the whole values of parameter number `index` in one of master, moment1, moment2, valid until
  /// the next call.
  at::Tensor values(at::Tensor ParameterBuffers::*buffer, std::size_t index);
  /// On the other ranks: returns when rank 0 needs no more.
  void serve();

 private:
  /// Whether this rank is the first of its shard group and speaks for it.
  bool leads() const { return groups_->shard().rank() == 0; }
  std::int64_t agree(std::int64_t order);
  /// What this tensor rank's ranks hold of an order's parameter.
  at::Tensor own_values(std::int64_t order);
  at::Tensor of_all_tensor_ranks(const at::Tensor& own, std::size_t index);

  const ParameterBuffers& buffers_;
  LayoutGroups* groups_;  ///< null where nothing is split
  std::int64_t held_buffer_ = -1, held_block_ = -1;
  at::Tensor block_;
};

}  // namespace assay::impl
