#pragma once
// Other layouts of the same ranks, where the one that was asked for does not fit in memory.
// (spec/plan/plan.md)
#include <optional>
#include <vector>

#include "spec/plan/plan.hpp"

namespace assay::spec::memory {

/// A layout, and how it fits.
struct LayoutWay {
  Layout layout;
  Way way;
};

/// How `setting` fits in `capacity` [B]: as it is, else with the largest smaller micro-batch, else with the
/// fewest extra FLOPs, else with both. Errors: as walk.
std::optional<Way> way_of(const Setting& setting, const Count& capacity);

/// The layouts of `setting.layout.ranks` ranks that fit in `capacity` [B], the asked one left out: replicate,
/// zero1, shard, and hybrid with the fewest shard_ranks that are whole hosts, where there are several hosts
/// of `ranks_per_host` ranks (0: of different numbers). Each as way_of says. The step's batch stays the same.
/// First those that need nothing else changed, then the others; the least moved bytes first in either.
/// Errors: as walk.
std::vector<LayoutWay> layouts_that_fit(const Setting& setting, std::int64_t ranks_per_host,
                                        const Count& capacity);

}  // namespace assay::spec::memory
