#include "impl/comm/launch.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "impl/comm/mpi_communicator.hpp"
#include "impl/comm/store_communicator.hpp"
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

bool by_mpi(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (environment(name)) return true;
  return false;
}

/// Two launchers, one inside the other, that count the processes differently.
void refuse_disagreement(const Environment& environment) {
  const auto mpi = number_of(environment, "OMPI_COMM_WORLD_SIZE"),
             torchrun = number_of(environment, "WORLD_SIZE");
  if (mpi && torchrun && environment("RANK") && *mpi != *torchrun)
    refuse_launch("OMPI_COMM_WORLD_SIZE=" + std::to_string(*mpi) +
                  " and WORLD_SIZE=" + std::to_string(*torchrun) +
                  ": mpirun and torchrun count the processes differently; start the ranks by one of them");
}

Launch by_store(const Environment& environment, const std::string& launcher, const char* size_name,
                const char* rank_name, int size) {
  const auto rank = number_of(environment, rank_name);
  const std::string counted = std::string(size_name) + "=" + std::to_string(size);
  if (!rank)
    refuse_launch(counted + ", but " + rank_name +
                  " is not set: which of them is this process? Start it by " + launcher + ", or unset " +
                  size_name);
  if (*rank >= size)
    refuse_launch(std::string(rank_name) + "=" + std::to_string(*rank) + " of " + counted +
                  ": ranks count from 0; the environment is another job's, or was edited");
  const char* host = environment("MASTER_ADDR");
  const auto port = number_of(environment, "MASTER_PORT");
  if (!host || !*host || !port || *port > 65535 || *port == 0)
    refuse_launch(counted + ": started by " + launcher +
                  ", as one of several processes, but MASTER_ADDR and MASTER_PORT do not say where rank 0 "
                  "is found: set both, or use mpirun, srun --mpi=pmix or `assay train --ranks N`");
  return {Launch::By::store, launcher, *rank, size, host, *port};
}
}  // namespace

Launch read_launch(const Environment& environment) {
  refuse_disagreement(environment);
  if (by_mpi(environment)) return {Launch::By::mpi, "", 0, 1, "", 0};  // MPI knows the rest
  const auto torchrun = number_of(environment, "WORLD_SIZE");
  // torchrun sets both. Two processes that each take themselves for the only one would write to one folder.
  if (const char* rank = environment("RANK"); rank && !torchrun)
    refuse_launch(
        std::string("RANK=") + rank +
        ", but WORLD_SIZE is not set: of how many processes? Start this one by torchrun, or unset RANK");
  if (torchrun && *torchrun > 1) return by_store(environment, "torchrun", "WORLD_SIZE", "RANK", *torchrun);
  // A batch script of Slurm has no step: only srun sets the number of a step's tasks.
  const auto tasks = number_of(environment, "SLURM_STEP_NUM_TASKS");
  if (tasks && *tasks > 1 && environment("SLURM_PROCID"))
    return by_store(environment, "srun without --mpi", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", *tasks);
  return {};
}

bool launched_by_mpi() {
  return by_mpi([](const char* name) { return std::getenv(name); });
}

std::unique_ptr<Communicator> make_communicator() {
  const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
  switch (launch.by) {
    case Launch::By::mpi:
      return make_mpi_communicator();
    case Launch::By::store:
      return make_store_communicator(launch);
    case Launch::By::nobody:
      break;
  }
  return make_self_communicator();
}

}  // namespace assay::impl
