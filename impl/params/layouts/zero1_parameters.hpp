#pragma once
#include "impl/params/gradient_reduction.hpp"
#include "impl/params/layouts/local_parameters.hpp"
#include "impl/params/non_finite_gradient.hpp"

namespace assay::impl {

/// Weights and gradients whole, the optimizer's state in shards. A reduce-scatter gives each rank its shard
/// of the gradient, the rank updates that shard of the weights, and an all-gather behind the next forward
/// makes the weights whole again. Reductions begin as in ReplicatedParameters.
class Zero1Parameters final : public LocalParameters {
 public:
  /// `buffers` is partitioned over the ranks of `shard`. `wire`: dtype in which gradients are summed.
  Zero1Parameters(const ParameterBuffers& buffers, const spec::ModelSpec& model, Communicator& shard,
                  at::ScalarType wire);

  const BlockWeights& acquire(std::int64_t block, Weights as) override;
  void begin_backward(bool last_micro_batch) override;
  void gradients_ready(std::int64_t block) override;
  void reduce_scatter() override { reduction_.finish_all(); }
  void all_gather() override;
  at::Tensor sum_of_squares() override;
  void weights_changed() override;
  void settle_weights() override;
  void begin_search() override { non_finite_.begin(); }
  std::string end_search() override { return non_finite_.end(); }

 private:
  void wait_for(std::int64_t block);

  const bool tied_;
  Communicator& shard_;
  GradientReduction reduction_;
  NonFiniteGradient non_finite_;
  bool reduce_when_ready_ = false;
  std::vector<Communicator::Ticket> gathers_;  ///< of each block; 0: complete
};

}  // namespace assay::impl
