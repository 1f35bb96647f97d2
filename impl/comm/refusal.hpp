#pragma once
// A refusal that all ranks share: one message and one exit code for the job.
#include <exception>
#include <functional>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// failure_of's (spec/failure.hpp).
ExitCode exit_code_of(const std::exception& error);

/// Does `work` on each rank. Where it throws on any, all ranks throw AgreedError: its text where it is the
/// same on all, otherwise that of the lowest rank that it failed on, with this rank and its host. A lone
/// rank's errors are thrown on. Collective; `work` is not.
void refuse_together(Communicator& communicator, const std::function<void()>& work);

}  // namespace assay::impl
