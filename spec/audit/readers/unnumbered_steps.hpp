#pragma once
// Steps that a trainer prints without their numbers.
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Dictionaries on Hugging Face's console name no step. Where the run's steps are known and one interval of
/// logging alone gives as many lines, they stand at its multiples, unless their epochs deny it.
void number_steps(RunRecord& run);

}  // namespace assay::spec::audit
