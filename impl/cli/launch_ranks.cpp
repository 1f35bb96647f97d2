#include "impl/cli/launch_ranks.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
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

std::int64_t rank_in_launch() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"})
    if (const char* rank = std::getenv(name)) return std::atoll(rank);
  return -1;
}

int refuse_ranks_within_launch(const std::string& why) {
  if (rank_in_launch() <= 0) throw UserError(ExitCode::usage, why);
  // A launcher ends the others as soon as one has failed.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return static_cast<int>(ExitCode::usage);
}

int launch_ranks(std::int64_t ranks, const std::vector<std::string>& words) {
  // A batch script of Slurm has a number, too, and no step.
  const bool by_mpi =
      std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE") || std::getenv("PMIX_RANK");
  if (by_mpi)
    return refuse_ranks_within_launch("--ranks " + std::to_string(ranks) +
                                      " starts mpirun, which has started this process already: do without "
                                      "one of them, as in `assay train --ranks " +
                                      std::to_string(ranks) + "` or `mpirun -n " + std::to_string(ranks) +
                                      " assay-train`");
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
