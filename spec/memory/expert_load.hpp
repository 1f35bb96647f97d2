#pragma once
// How many rows of tokens the routing can bring to a rank of an expert group. (spec/plan/plan.md)
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

}  // namespace assay::spec::memory
