#pragma once
// What the user says of a run that its log does not hold, or not so: --set.
#include <string>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Puts `set` (ReadOptions::set) into `record`. Errors: UserError(usage) for an unknown setting (with the
/// nearest), one given twice, a value that is no number or a part of a count, a unit of
/// something else, memory or a peak without one, a model or GPU that is not
/// known, or a part without "=".
void apply_settings(RunRecord& record, const std::string& set);

/// Checks `set` without a record. Errors: as apply_settings.
void check_settings(const std::string& set);

}  // namespace assay::spec::audit
