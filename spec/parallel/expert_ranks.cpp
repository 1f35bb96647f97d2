#include "spec/parallel/expert_ranks.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include "spec/error.hpp"

namespace assay::spec {

void check_expert_ranks(const ModelSpec& model, std::int64_t e, const Layout& layout,
                        std::int64_t tensor_ranks, std::int64_t micro) {
  const auto degree = [&] { return "parallel.expert = " + std::to_string(e); };
  // placement_c10
  require(e >= 1, "placement_c10", degree);
  // placement_c14
  require(!model.experts || micro % tensor_ranks == 0, "placement_c14", [&] {
    return "parallel.tensor = " + std::to_string(tensor_ranks) + " does not divide the " +
           std::to_string(micro) + (micro == 1 ? " sequence" : " sequences") +
           " of a micro-batch (batch.micro), of which each tensor rank routes whole ones to experts";
  });
  if (e == 1) return;
  // placement_c11
  require(model.experts.has_value(), "placement_c11",
          [&] { return degree() + ": " + model.name + " has no experts; leave it out"; });
  const auto undivided = [&](std::int64_t extent, const std::string& what) {
    return degree() + " does not divide the " + std::to_string(extent) + " " + what;
  };
  // placement_c12
  require(model.experts->count % e == 0, "placement_c12",
          [&] { return undivided(model.experts->count, "experts of a layer"); });
  const std::int64_t among = (layout.shards_state() ? layout.shard_ranks : layout.ranks) * tensor_ranks;
  // placement_c13
  require(among % e == 0, "placement_c13", [&] {
    const std::string noun =
        std::string(tensor_ranks > 1 ? "" : "data-parallel ") + (among == 1 ? "rank" : "ranks");
    return undivided(among, noun + (layout.shards_state()
                                        ? " of a shard group, which hold one copy of the state between them"
                                        : ""));
  });
}

bool tensor_ranks_divide(const ModelSpec& model, std::int64_t micro, std::int64_t sequence_length,
                         std::int64_t tensor_ranks) {
  return (model.experts ? micro : micro * sequence_length) % tensor_ranks == 0;
}

Layout expert_layout(const Layout& layout, std::int64_t ranks, std::int64_t tensor_ranks) {
  return {layout.data, layout.ranks * tensor_ranks / ranks,
          layout.shards_state() ? layout.shard_ranks * tensor_ranks / ranks : 1};
}

std::int64_t routed_expert(const Parameter& parameter) {
  if (parameter.role != Role::expert_gate && parameter.role != Role::expert_up &&
      parameter.role != Role::expert_down)
    return -1;
  // Families name the MLP and its matrices in their own ways, and number experts alike: "...experts.7.w1...".
  constexpr std::string_view before = ".experts.";
  std::int64_t number = -1;
  std::from_chars(parameter.name.data() + parameter.name.find(before) + before.size(),
                  parameter.name.data() + parameter.name.size(), number);
  return number;
}

}  // namespace assay::spec
