#pragma once
// A log that is one JSON document.
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit {

/// Its runs. Errors: UserError(bad_data) where it is cut, several, or of no known trainer.
std::vector<RunRecord> read_document(Blocks& blocks, const ReadOptions& options, const Mapping& mapping);

}  // namespace assay::spec::audit
