#include "impl/params/layouts/make_parameters.hpp"

#include "impl/params/layouts/expert_parameters.hpp"
#include "impl/params/layouts/replicated_parameters.hpp"
#include "impl/params/layouts/sharded_parameters.hpp"
#include "impl/params/layouts/zero1_parameters.hpp"

namespace assay::impl {

namespace {
std::unique_ptr<ParameterLayout> of_layout(const ParameterBuffers& buffers, const spec::ModelSpec& model,
                                           LayoutGroups& groups, at::ScalarType wire,
                                           const spec::LinearPrecision& linear) {
  const spec::Layout& layout = groups.layout();
  if (layout.ranks == 1) return std::make_unique<LocalParameters>(buffers, model);
  if (layout.shards_weights())
    return std::make_unique<ShardedParameters>(buffers, model, groups, wire, linear);
  if (layout.shards_state()) return std::make_unique<Zero1Parameters>(buffers, model, groups.shard(), wire);
  return std::make_unique<ReplicatedParameters>(buffers, model, groups.replicas(), wire);
}
}  // namespace

std::unique_ptr<ParameterLayout> make_parameters(const ParameterBuffers& buffers,
                                                 const spec::ModelSpec& model, LayoutGroups& groups,
                                                 at::ScalarType wire, const spec::LinearPrecision& linear) {
  auto all = of_layout(buffers, model, groups, wire, linear);
  if (!groups.experts()) return all;
  return std::make_unique<ExpertParameters>(
      std::move(all), of_layout(*buffers.experts, model, *groups.experts(), wire, {}), groups.expert(),
      groups.tensor().rank() == 0, buffers.inventory.blocks);
}

}  // namespace assay::impl
