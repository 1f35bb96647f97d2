#pragma once
// How many rows of tokens the routing can bring to a rank of an expert group, and how many of them a capacity
// of memory has room for. (spec/memory/plan.md)
#include <cstdint>

#include "spec/count.hpp"
#include "spec/memory/setting.hpp"

namespace assay::spec::memory {

/// Most rows that the experts of a rank get in a layer, of N tokens on each rank of its group: every token's
/// choices, as far as a rank has experts for them. `drops`: but those that Setting::capacity drops. Domain: a
/// model with experts.
std::int64_t most_rows(const Setting& setting, std::int64_t N, bool drops);

/// The largest Setting::load that routing can bring in a forward pass of the run; 1 without expert ranks.
double most_load(const Setting& setting);

/// The largest load, in hundredths, with which `setting` takes at most `capacity` [B]: most_load where that
/// fits, 1 where no larger one does, or not even that. Errors: as walk.
double load_that_fits(const Setting& setting, const Count& capacity);

}  // namespace assay::spec::memory
