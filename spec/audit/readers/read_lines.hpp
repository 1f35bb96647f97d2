#pragma once
// A log of lines: the trainer is known from its first step line on, and then reads the lines before it, too.
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit {

/// Its runs. Errors: UserError(bad_data) where no line is one of a known trainer; UserError(usage) as
/// read_logs.
std::vector<RunRecord> read_lines(Blocks& blocks, const ReadOptions& options, const Mapping& mapping,
                                  LogShape shape);

}  // namespace assay::spec::audit
