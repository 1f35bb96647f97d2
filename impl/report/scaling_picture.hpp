#pragma once
// The section "What more ranks bring": what `assay bench scaling` has measured.
#include <string>
#include <vector>

#include "spec/metrics/scaling.hpp"

namespace assay::impl::report {

/// The section, with a bar for each row: what of a rank's tokens/s alone is kept, and where the rest goes
/// (spec/metrics/scaling.md). A part that is a gain is left out of its bar.
std::string scaling_picture(const std::vector<spec::metrics::ScalingRow>& rows, bool strong);

}  // namespace assay::impl::report
