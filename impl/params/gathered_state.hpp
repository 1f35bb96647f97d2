#pragma once
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// The whole state on rank 0, gathered block by block from the shards of its group: at most one block of one
/// buffer is whole at a time. The other ranks of the group serve the values that rank 0 asks for, until rank
/// 0's object is destroyed. Ranks of other groups do nothing.
class GatheredState {
 public:
  /// `groups` may be null: everything is whole on every rank. Both must outlive this.
  GatheredState(const ParameterBuffers& buffers, LayoutGroups* groups);
  ~GatheredState();
  GatheredState(const GatheredState&) = delete;
  GatheredState& operator=(const GatheredState&) = delete;

  /// On rank 0: a parameter's values in one of master, moment1, moment2, valid until the next call.
  at::Tensor values(at::Tensor ParameterBuffers::*buffer, const spec::Parameter& parameter);
  /// On the other ranks: returns when rank 0 needs no more.
  void serve();

 private:
  void gather(std::int64_t buffer, std::int64_t block);
  std::int64_t agree(std::int64_t order);

  const ParameterBuffers& buffers_;
  LayoutGroups* groups_;  ///< null where nothing is in shards
  std::int64_t held_buffer_ = -1, held_block_ = -1;
  at::Tensor block_;
};

}  // namespace assay::impl
