#pragma once
// Expert parallelism: which experts a data rank holds, and over which ranks their gradients are summed. Rules
// and example: spec/parallel/expert_ranks.md.
#include <cstdint>

#include "spec/model/inventory.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::spec {

/// A rank of an expert group of `ranks` neighbouring data ranks.
struct ExpertRank {
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  bool operator==(const ExpertRank&) const = default;
};

/// Refuses a degree that the model or the data ranks do not allow (spec/config/division.hpp names those that
/// they do). Errors: SpecError placement_c10 (degree below 1), placement_c11 (a model without experts),
/// placement_c12 (experts), placement_c13 (data ranks, of a shard group where state is sharded),
/// placement_c14 (tensor ranks).
void check_expert_ranks(const ModelSpec& model, std::int64_t ranks, const Layout& layout,
                        std::int64_t tensor_ranks = 1);

/// The layout of the experts that a rank holds, over the data ranks that hold the same ones: N/e of them in
/// shards of S/e. Domain: check_expert_ranks holds.
Layout expert_layout(const Layout& layout, std::int64_t ranks);

/// Global number of the routed expert that a parameter is of; -1: of none, so that every rank holds it.
std::int64_t routed_expert(const Parameter& parameter);

/// What a rank holds of the model's inventory: all but the routed experts, its own X/e of them, and both
/// together. Places are those of `selection`. Errors: as inventory; SpecError placement_c15 (a rank outside
/// of the group).
Inventory dense_inventory(const ModelSpec& model);
Inventory expert_inventory(const ModelSpec& model, const ExpertRank& rank);
Inventory rank_inventory(const ModelSpec& model, const ExpertRank& rank);

}  // namespace assay::spec
