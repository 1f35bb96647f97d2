#pragma once
// Expert parallelism: which experts a rank holds, and over which ranks their gradients are summed. Rules and
// example: spec/parallel/expert_ranks.md.
#include <cstdint>

#include "spec/model/inventory.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::spec {

/// Refuses a degree that the model or the ranks do not allow (spec/config/division.hpp names those that they
/// do). `layout`: of the data ranks, each of `tensor_ranks`; `micro`: sequences of a micro-batch. Errors:
/// SpecError placement_c10 (degree below 1), placement_c11 (a model without experts), placement_c12
/// (experts), placement_c13 (ranks, of a shard group where state is sharded), placement_c14 (sequences).
void check_expert_ranks(const ModelSpec& model, std::int64_t ranks, const Layout& layout,
                        std::int64_t tensor_ranks = 1, std::int64_t micro = 1);

/// Whether tensor ranks may split a micro-batch: its tokens in equal parts (placement_c6), with experts its
/// sequences (placement_c14).
bool tensor_ranks_divide(const ModelSpec& model, std::int64_t micro, std::int64_t sequence_length,
                         std::int64_t tensor_ranks);

/// The layout of the experts that a rank holds, over the ranks that hold the same ones: of N data ranks in
/// shards of S, each of t tensor ranks, N t/e in shards of S t/e. Domain: check_expert_ranks holds.
Layout expert_layout(const Layout& layout, std::int64_t ranks, std::int64_t tensor_ranks = 1);

/// Global number of the routed expert that a parameter is of; -1: of none, so that every rank holds it.
std::int64_t routed_expert(const Parameter& parameter);

}  // namespace assay::spec
