#pragma once
#include <memory>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/params/layouts/parameter_layout.hpp"

namespace assay::impl {

/// Two layouts as one: that of a rank's routed experts, over the ranks that hold the same experts, and
/// that of everything else, over all data ranks (spec/parallel/expert_ranks.md). Each has blocks of its own;
/// a block's fields are put together here.
class ExpertParameters final : public ParameterLayout {
 public:
  /// `group`: the ranks that hold all experts between them, which must outlive this. `counted`: whether this
  /// rank's sum of squares has theirs, as that of one of the tensor ranks has.
  ExpertParameters(std::unique_ptr<ParameterLayout> dense, std::unique_ptr<ParameterLayout> experts,
                   Communicator& group, bool counted, std::int64_t blocks);

  const BlockWeights& acquire(std::int64_t block, Weights as) override;
  void release(std::int64_t block) override;
  BlockGradients gradients(std::int64_t block) override;
  void gradients_ready(std::int64_t block) override;

  void begin_step(linear::GradientSum first) override;
  void begin_forward() override;
  void begin_backward(bool last_micro_batch) override;
  void all_reduce() override;
  void reduce_scatter() override;
  void all_gather() override;
  at::Tensor sum_of_squares() override;
  void weights_changed() override;
  void settle_weights() override;
  void begin_search() override;
  std::string end_search() override;
  std::string non_finite_sum() const override;

 private:
  const std::unique_ptr<ParameterLayout> dense_, experts_;
  Communicator& group_;
  const bool counted_;
  std::vector<BlockWeights> weights_;  ///< of each block, as acquired last
  std::vector<BlockViews> gradients_;
};

}  // namespace assay::impl
