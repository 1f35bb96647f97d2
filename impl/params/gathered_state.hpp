#pragma once
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// The whole state on rank 0: gathered block by block from the shards of a data rank's copy, and parameter by
/// parameter from the tensor ranks, put together on the host, or from the expert rank that holds it. At most
/// one block of one buffer is gathered at a time, and the parts of one parameter. The other ranks of those
/// groups serve the values that rank 0 asks for, until rank 0's object is destroyed. Ranks that hold copies
/// do nothing.
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
  /// A parameter in this rank's buffers; null: another expert rank holds it.
  struct Held {
    const ParameterBuffers* buffers = nullptr;
    std::size_t index = 0;
    const spec::Parameter& parameter() const { return buffers->inventory.parameters[index]; }
  };
  /// Whether this rank is the first of its copy and speaks for it.
  bool leads() const { return groups_->copy().rank() == 0; }
  std::int64_t agree(std::int64_t order);
  /// Whether all of a parameter's values in buffer `number` are at hand.
  bool at_hand(const Held& held, std::int64_t number) const;
  /// The values that the ranks of this one's shard group hold.
  at::Tensor of_shards(const Held& held, std::int64_t number);
  /// What this tensor rank's ranks hold of an order's parameter. Undefined where other expert ranks hold it,
  /// but on the first rank of a copy.
  at::Tensor own_values(std::int64_t order);
  at::Tensor of_all_tensor_ranks(const at::Tensor& own, std::size_t index);

  const ParameterBuffers& buffers_;
  LayoutGroups* groups_;    ///< null where nothing is split
  std::vector<Held> held_;  ///< of each parameter of the model
  const ParameterBuffers* block_of_ = nullptr;
  std::int64_t block_buffer_ = -1, block_number_ = -1;
  at::Tensor block_;
};

}  // namespace assay::impl
