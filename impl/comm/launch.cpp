#include "impl/comm/launch.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "impl/comm/gloo_communicator.hpp"
#include "impl/machine/launchers.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
[[noreturn]] void refuse_launch(const std::string& text) { throw UserError(ExitCode::usage, text); }

/// The variable's whole number; nothing when it is not set.
std::optional<int> number_of(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (!text) return {};
  int number = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error != std::errc() || *end || number < 0)
    refuse_launch(std::string(name) + "=" + text + ": not a count of processes; it is the launcher's to set");
  return number;
}

std::string text_of(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text ? text : "";
}

bool all_here(const Environment& environment, const LauncherVariables& counts, int size) {
  return counts.here ? number_of(environment, counts.here) == size
                     : number_of(environment, "SLURM_STEP_NUM_NODES") == 1;
}

/// Two launchers, one inside the other, that count the processes differently. (srun often starts torchrun
/// once a host, so its count says nothing against torchrun's.)
void refuse_disagreement(const Environment& environment) {
  const auto mpi = number_of(environment, "OMPI_COMM_WORLD_SIZE"),
             torchrun = number_of(environment, "WORLD_SIZE");
  if (mpi && torchrun && environment("RANK") && *mpi != *torchrun)
    refuse_launch("OMPI_COMM_WORLD_SIZE=" + std::to_string(*mpi) +
                  " and WORLD_SIZE=" + std::to_string(*torchrun) +
                  ": mpirun and torchrun count the processes differently; start the ranks by one of them");
}

Launch launched_by(const Environment& environment, const LauncherVariables& counts, int size) {
  Launch launch{.launcher = counts.launcher, .size = size};
  if (!text_of(environment, "ASSAY_LAUNCHER").empty()) launch.launcher = "assay";
  const std::string counted = std::string(counts.size) + "=" + std::to_string(size);
  launch.one_host = all_here(environment, counts, size);
  launch.host_key = text_of(environment, "ASSAY_HOST_KEY");
  const auto rank = number_of(environment, counts.rank);
  if (!launch.host_key.empty()) {
    launch.rank = -1;
    launch.local_rank = number_of(environment, "LOCAL_RANK").value_or(0);
    launch.local_size = number_of(environment, "LOCAL_WORLD_SIZE").value_or(1);
  } else if (!rank) {
    refuse_launch(counted + ", but " + counts.rank +
                  " is not set: which of them is this process? Start it by " + launch.launcher +
                  ", or unset " + counts.size);
  } else if (*rank >= size) {
    refuse_launch(std::string(counts.rank) + "=" + std::to_string(*rank) + " of " + counted +
                  ": ranks count from 0; the environment is another job's, or was edited");
  } else {
    launch.rank = *rank;
  }
  launch.host = text_of(environment, "MASTER_ADDR");
  launch.port = number_of(environment, "MASTER_PORT").value_or(0);
  if (launch.host.empty() || launch.port < 1 || launch.port > 65535)
    refuse_launch(counted + ": started by " + launch.launcher +
                  ", as one of several processes, but MASTER_ADDR and MASTER_PORT do not say where they "
                  "meet: set both, or use `assay train --ranks N`");
  launch.listener = number_of(environment, "ASSAY_STORE_LISTENER").value_or(-1);
  launch.served = text_of(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.keys = "assay/" + text_of(environment, "TORCHELASTIC_RESTART_COUNT") + "/";
  return launch;
}
}  // namespace

Launch read_launch(const Environment& environment) {
  refuse_disagreement(environment);
  // torchrun sets both. Two processes that each take themselves for the only one would write to one folder.
  if (const char* rank = environment("RANK"); rank && !environment("WORLD_SIZE"))
    refuse_launch(
        std::string("RANK=") + rank +
        ", but WORLD_SIZE is not set: of how many processes? Start this one by torchrun, or unset RANK");
  for (const LauncherVariables& counts : launchers) {
    const auto size = number_of(environment, counts.size);
    if (size && *size > 1) return launched_by(environment, counts, *size);
    if (size && environment("RANK")) return {};  // alone, whatever started its launcher
  }
  return {};
}

std::unique_ptr<Communicator> make_communicator(const std::function<bool()>& stopped) {
  const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
  if (launch.launcher.empty()) return make_self_communicator();
  return make_gloo_communicator(launch, std::chrono::minutes(2), std::chrono::minutes(10), stopped);
}

}  // namespace assay::impl
