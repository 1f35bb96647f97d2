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

/// For `--ranks` in a process that a launcher (mpirun, srun, torchrun) started as one of several: `why` is an
/// error of the first of them, the others end without a word, a moment later. Returns their exit code.
/// Errors: UserError(usage).
int refuse_ranks_within_launch(const std::string& why);

/// Number of this process in its launcher's job; -1 where none says it.
std::int64_t rank_in_launch();

}  // namespace assay::impl::cli
