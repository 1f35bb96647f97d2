#include "impl/cli/launch_ranks.hpp"

#include <unistd.h>

#include <thread>
#include <utility>

#include "impl/cli/program.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {
namespace {

/// What mpirun needs to start ranks on this machine; everything can be overridden from outside.
std::vector<std::pair<std::string, std::string>> mpi_environment(std::int64_t ranks) {
  std::vector<std::pair<std::string, std::string>> out = {
      // Open MPI would bind each of two ranks to one core, whatever compute.threads says.
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
      // The ranks print their own errors; mpirun's banner about exit codes would bury them.
      {"OMPI_MCA_orte_execute_quiet", "1"},
      // A rank that has lost another one has to say so: a second between SIGTERM and SIGKILL is short where
      // the host is busy. mpirun passes no output on meanwhile.
      {"OMPI_MCA_odls_base_sigkill_timeout", "2"},
      // Containers forbid the system call behind single-copy transfers, and each one would warn.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
  };
  // mpirun gives rank 0 a terminal of its own, even where the output ends in a file or a pipe.
  if (!isatty(STDOUT_FILENO)) out.emplace_back("NO_COLOR", "1");
  if (geteuid() == 0) {
    out.insert(out.end(), {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
    out.insert(out.end(), {{"PRTE_ALLOW_RUN_AS_ROOT", "1"}, {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  }
  if (ranks > static_cast<std::int64_t>(std::thread::hardware_concurrency()))
    out.insert(out.end(), {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                           {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"}});
  return out;
}

}  // namespace

int launch_ranks(std::int64_t ranks, const std::vector<std::string>& words) {
  const std::string launcher = in_search_path("mpirun");
  if (launcher.empty())
    throw UserError(ExitCode::usage,
                    "--ranks " + std::to_string(ranks) +
                        " needs mpirun, which is not in PATH: install Open MPI "
                        "(Debian and Ubuntu: apt install openmpi-bin) or do without --ranks");
  std::vector<std::string> command = {launcher, "-n", std::to_string(ranks)};
  command.insert(command.end(), words.begin(), words.end());
  auto variables = mpi_environment(ranks);
  for (auto& variable : thread_environment()) variables.push_back(std::move(variable));
  const int code = supervise(command, variables);
  // mpirun ends as its first rank did. One that a signal ended is a lost rank, unless people asked for it.
  const bool by_a_signal = code > 128 && stops_passed_on() == 0;
  return by_a_signal ? static_cast<int>(ExitCode::peer_lost) : code;
}

}  // namespace assay::impl::cli
