#pragma once
#include <vector>

#include "impl/params/block_codes.hpp"
#include "impl/params/gradient_reduction.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/params/non_finite_gradient.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Weights, gradients and the optimizer's state in shards. A block's weights are all-gathered when it is
/// acquired, or earlier, while the block before it computes. Its gradient is reduce-scattered behind the
/// backward of the next block. As operands the linears of some blocks are gathered as FP8 codes (BlockCodes),
/// in the same slot as their values. Whole at a time are the weights and gradients of two decoder blocks and
/// of the embedding or the head, or of both where they are one matrix; spec/parallel/volume.md says which
/// all-gathers that saves. With several replicas (hybrid), the shards of the gradient are summed over the
/// replicas behind the last backward.
class ShardedParameters final : public ParameterLayout {
 public:
  /// `buffers` is partitioned over ranks.state. `wire`: dtype in which gradients are summed. Both must
  /// outlive this.
  ShardedParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                    const LayoutGroups::Set& ranks, at::ScalarType wire,
                    const spec::LinearPrecision& linear = {});

  const BlockWeights& acquire(std::int64_t block, Weights as) override;
  void release(std::int64_t block) override;
  BlockGradients gradients(std::int64_t block) override;
  void gradients_ready(std::int64_t block) override;

  void begin_step(linear::GradientSum first) override;
  void begin_forward() override { backward_ = false; }
  void begin_backward(bool last_micro_batch) override;
  void all_reduce() override;
  void reduce_scatter() override;
  at::Tensor sum_of_squares() override;
  void weights_changed() override;
  void begin_search() override { non_finite_.begin(); }
  std::string end_search() override { return non_finite_.end(); }
  std::string non_finite_sum() const override { return first_non_finite_gradient(buffers_); }

 private:
  /// Buffers of a whole block. Blocks take turns in it.
  struct Slot {
    at::Tensor weights, gradients;            ///< of the largest block that comes here
    std::int64_t holds = -1;                  ///< block whose weights are here or on their way
    bool codes = false;                       ///< as FP8 codes
    Communicator::Ticket gather = 0;          ///< of those; 0: here
    int users = 0;                            ///< acquires without their release
    std::int64_t accumulates = -1;            ///< block whose gradient is being added up here
    GradientReduction::Number reduction = 0;  ///< the last one that reads from here
  };

  bool is_head(std::int64_t block) const { return block + 1 == buffers_.inventory.blocks; }
  Slot& slot_of(std::int64_t block);
  void lay_out(const spec::ModelSpec& model);
  bool as_codes(std::int64_t block, Weights as) const { return as == Weights::operands && codes_.of(block); }
  void gather(std::int64_t block, Weights as);
  void wait_for(std::int64_t block, Weights as);
  void prefetch_after(std::int64_t block, Weights as);
  bool of_decoder(std::int64_t block) const { return block > 0 && !is_head(block); }
  void accumulate(std::int64_t block);

  const ParameterBuffers& buffers_;
  const bool tied_;
  Communicator& shard_;
  Communicator& replicas_;
  GradientReduction scatter_, reduce_;
  NonFiniteGradient non_finite_;
  bool backward_ = false, last_ = false;
  std::vector<Slot> slots_;  ///< two of decoder blocks, then the embedding, then the head
  BlockCodes codes_;
  std::vector<BlockWeights> weights_;            ///< of each block in its slot: values
  std::vector<BlockViews> gradients_;            ///< beside them
  std::vector<std::vector<at::Tensor>> zeroed_;  ///< of each block's gradients, before it adds to its slot
};

}  // namespace assay::impl
