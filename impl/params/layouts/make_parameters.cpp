#include "impl/params/layouts/make_parameters.hpp"

#include <ATen/ATen.h>

#include <vector>

#include "impl/params/layouts/replicated_parameters.hpp"
#include "impl/params/layouts/sharded_parameters.hpp"
#include "impl/params/layouts/zero1_parameters.hpp"

namespace assay::impl {

namespace {
using Layouts = std::vector<std::unique_ptr<ParameterLayout>>;

std::unique_ptr<ParameterLayout> of_layout(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                           const LayoutGroups::Set& ranks, at::ScalarType wire,
                                           const spec::LinearPrecision& linear) {
  const spec::Layout& layout = ranks.layout;
  if (layout.ranks == 1) return std::make_unique<LocalParameters>(buffers, model);
  if (layout.shards_weights())
    return std::make_unique<ShardedParameters>(buffers, model, ranks, wire, linear);
  if (layout.shards_state()) return std::make_unique<Zero1Parameters>(buffers, model, ranks.state, wire);
  return std::make_unique<ReplicatedParameters>(buffers, model, ranks.replicas, wire);
}

/// Several sets, each in its layout, as one. A block's fields are put together.
class ParameterSets final : public ParameterLayout {
 public:
  ParameterSets(Layouts sets, LayoutGroups& groups, std::int64_t blocks)
      : sets_(std::move(sets)),
        groups_(groups),
        weights_(static_cast<std::size_t>(blocks)),
        gradients_(static_cast<std::size_t>(blocks)) {}

  const BlockWeights& acquire(std::int64_t block, Weights as) override {
    BlockWeights& all = weights_.at(static_cast<std::size_t>(block)) = {};
    for (const auto& set : sets_) spec::step::complete(all, set->acquire(block, as));
    return all;
  }
  BlockGradients gradients(std::int64_t block) override {
    BlockViews& all = gradients_.at(static_cast<std::size_t>(block)) = {};
    std::vector<linear::GradientSum> sums;
    for (const auto& set : sets_) {
      const BlockGradients own = set->gradients(block);
      spec::step::complete(all, own.views);
      sums.push_back(own.sum);
    }
    return {all, sums.front(), sums.back()};
  }
  /// Each rank of a group counts its own experts, and of the tensor ranks, which are summed behind it, one.
  at::Tensor sum_of_squares() override {
    at::Tensor sum = sets_.front()->sum_of_squares();
    for (std::size_t i = 1; i < sets_.size(); ++i) {
      const at::Tensor own = sum_in_rank_order(sets_[i]->sum_of_squares(), groups_.expert());
      if (groups_.tensor().rank() == 0) sum = sum + own;
    }
    return sum;
  }
  std::string end_search() override {
    return first([](ParameterLayout& set) { return set.end_search(); });
  }
  std::string non_finite_sum() const override {
    return first([](const ParameterLayout& set) { return set.non_finite_sum(); });
  }

  void release(std::int64_t block) override { each(&ParameterLayout::release, block); }
  void gradients_ready(std::int64_t block) override { each(&ParameterLayout::gradients_ready, block); }
  void begin_step(linear::GradientSum sum) override { each(&ParameterLayout::begin_step, sum); }
  void begin_forward() override { each(&ParameterLayout::begin_forward); }
  void begin_backward(bool last) override { each(&ParameterLayout::begin_backward, last); }
  void all_reduce() override { each(&ParameterLayout::all_reduce); }
  void reduce_scatter() override { each(&ParameterLayout::reduce_scatter); }
  void all_gather() override { each(&ParameterLayout::all_gather); }
  void weights_changed() override { each(&ParameterLayout::weights_changed); }
  void settle_weights() override { each(&ParameterLayout::settle_weights); }
  void begin_search() override { each(&ParameterLayout::begin_search); }

 private:
  template <class Method, class... Arguments>
  void each(Method method, Arguments... arguments) {
    for (const auto& set : sets_) ((*set).*method)(arguments...);
  }
  /// Of all sets, each of which is asked, the first name.
  template <class Name>
  std::string first(const Name& name) const {
    std::string found;
    for (const auto& set : sets_) {
      const std::string own = name(*set);
      if (found.empty()) found = own;
    }
    return found;
  }

  const Layouts sets_;
  LayoutGroups& groups_;
  std::vector<BlockWeights> weights_;  ///< of each block, as acquired last
  std::vector<BlockViews> gradients_;
};
}  // namespace

std::unique_ptr<ParameterLayout> make_parameters(const ParameterBuffers& buffers,
                                                 const spec::ModelSpec& model, LayoutGroups& groups,
                                                 at::ScalarType wire, const spec::LinearPrecision& linear) {
  Layouts sets;
  for (const ParameterBuffers* set : buffers.sets())  // routed experts are not gathered as codes
    sets.push_back(of_layout(*set, model, groups.sets().at(sets.size()), wire,
                             sets.empty() ? linear : spec::LinearPrecision{}));
  if (sets.size() == 1) return std::move(sets.front());
  return std::make_unique<ParameterSets>(std::move(sets), groups, buffers.inventory.blocks);
}

}  // namespace assay::impl
