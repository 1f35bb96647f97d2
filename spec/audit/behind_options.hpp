#pragma once
// Which options of the command line a contradiction rests on.
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

/// The options ("--gpus 8") without which an invariant that contradicts would be judged otherwise: not at
/// all, or of other numbers. Without one the log's own word stands, where it has any. Of `results` those
/// that contradict are examined.
std::vector<std::string> options_behind(const RunRecord& record, const std::vector<Result>& results);

}  // namespace assay::spec::audit
