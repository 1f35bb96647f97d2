#pragma once
#include <functional>
#include <string>

#include "impl/run/start/resume_request.hpp"

namespace assay::impl::run {

/// Trains on this rank as the settings say that `load` gives, and returns the process exit code
/// (spec/error.hpp). Prints what the user sees (rank 0 only) and writes run.jsonl in its folder. `recorded`
/// is called on rank 0 with that folder once the record is complete. Errors: UserError and SpecError for
/// settings, data, checkpoint and I/O; NonFiniteError.
int train(const std::function<Request()>& load,
          const std::function<void(const std::string& folder)>& recorded = {});

}  // namespace assay::impl::run
