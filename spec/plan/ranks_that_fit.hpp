#pragma once
// More tensor ranks, or more ranks, where a run does not fit in memory. (spec/plan/plan.md)
#include <vector>

#include "spec/config/division.hpp"
#include "spec/plan/plan.hpp"

namespace assay::spec::memory {

/// A division of ranks, and how a rank of it fits.
struct RanksWay {
  std::int64_t tensor_ranks = 1;
  Layout layout;
  Way way;
};

/// Of `ranks` ranks, those that fit in `capacity` [B] with the batch of `setting`, the plan of `config` and
/// `model`: the fewest tensor ranks above the asked ones, with the layout as asked; and where these are more
/// ranks than the run has, ahead of it zero1 and shard with tensor ranks as asked. Micro-batch and recompute
/// as in layouts_that_fit. What is named satisfies the constraints on ranks (valid_degrees).
std::vector<RanksWay> ranks_that_fit(const RunConfig& config, const ModelSpec& model, const Setting& setting,
                                     const RunRanks& ranks, const Count& capacity);

}  // namespace assay::spec::memory
