#pragma once
// Several ranks on this machine.
#include <cstdint>
#include <string>
#include <vector>

#include "impl/cli/arguments.hpp"
#include "impl/machine/cgroup.hpp"

namespace assay::impl::cli {

/// The ranks that are started here, and where they meet those of other hosts.
struct RankJob {
  std::int64_t here = 1;
  std::int64_t all = 1;
  std::string host{};  ///< with `port`: of the store in which the hosts meet; empty: all ranks are here
  int port = 0;

  bool several() const { return all > 1; }
};

/// --ranks, --of and --rendezvous; `ranks`: where --ranks is not given. Errors: UserError(usage).
RankJob rank_job(const Arguments& arguments, std::int64_t ranks = 1);

/// The options that rank_job reads, for the table of verbs.
std::vector<Option> rank_options(const std::string& ranks);

/// Starts `words`, a program and its arguments, as the ranks of `job` that are here, and waits for them. They
/// have this process's terminal and process group, read nothing, and do not outlive it. The first SIGINT,
/// SIGTERM, SIGHUP or SIGUSR1 asks all of them to stop, a second one ends them. Returns the exit code of the
/// job: of the first rank that ended for a reason of its own; ExitCode::peer_lost where a signal ended one
/// that nobody asked for; 130 where somebody insisted. `groups` tell whether the system killed one for want
/// of memory. Errors: UserError(io) where they cannot be started.
int launch_ranks(const RankJob& job, const std::vector<std::string>& words, Cgroups groups = Cgroups());

/// For `--ranks` in a process that a launcher (srun, torchrun, mpirun) started as one of several: `why` is an
/// error of the first of them, the others end without a word, a moment later. Returns their exit code.
/// Errors: UserError(usage).
int refuse_ranks_within_launch(const std::string& why);

/// Number of this process in its launcher's job; -1 where none says it.
std::int64_t rank_in_launch();

}  // namespace assay::impl::cli
