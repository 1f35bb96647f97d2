#pragma once
#include "spec/config/run_config.hpp"

namespace assay::impl::run {

/// Trains as `config` says, on this rank, and returns the process exit code (spec/error.hpp). Prints what the user sees
/// (rank 0 only) and writes <run.directory>/run.jsonl.
/// Errors: UserError and SpecError for settings, data, checkpoint and I/O; NonFiniteError.
int train(const spec::RunConfig& config);

}  // namespace assay::impl::run
