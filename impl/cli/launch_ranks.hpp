#pragma once
// Several ranks on this machine.
#include <cstdint>
#include <string>
#include <vector>

namespace assay::impl::cli {

/// Runs `words`, a program and its arguments, as so many ranks of one job under mpirun, and waits for them.
/// Returns their exit code: the first rank's that ends, ExitCode::peer_lost where a signal ended it that
/// nobody asked for. Errors: UserError(usage) without mpirun; those of `supervise` (impl/cli/program.hpp).
int launch_ranks(std::int64_t ranks, const std::vector<std::string>& words);

}  // namespace assay::impl::cli
