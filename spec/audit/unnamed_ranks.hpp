#pragma once
// Ranks that print without saying which they are.
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// The first line of each step, where every step has as many lines (the last may be cut), near each other and
/// with one loss: ranks that print without saying which they are, some a step ahead of others. Else all
/// lines: one doubled here or there is no rank, nor is a log each line of which is there twice.
std::vector<const Step*> without_unnamed_ranks(const std::vector<const Step*>& lines);

}  // namespace assay::spec::audit
