#pragma once
// Tokens/s of one GPU that stand beside none of all.
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Where no step prints tokens/s of all, those of one GPU are the run's tokens/s and `format` says whose they
/// are: every relation that asks for a rate then has one.
void take_lone_gpu_rate(RunRecord& record);

}  // namespace assay::spec::audit
