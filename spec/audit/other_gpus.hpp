#pragma once
// A log that goes on on other GPUs: its peak changes, and its rate with it.
#include <vector>

#include "spec/audit/evidence.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

/// Whether `samples`, the lines of a stretch in order, change once and for good between the ratio that most
/// share and the one that the others share, and their tokens/s change there by more than they scatter. The
/// first line of either side holds compilation. Chosen: nine in ten pairs of a line of either side lie one
/// way, as single lines are slow for pauses, and the medians are a twentieth apart.
bool changes_with_rate(const Evidence& e, const std::vector<const Sample*>& samples, const Shared& most,
                       const Shared& others);

}  // namespace assay::spec::audit
