#pragma once
// Which process of which job this is, by the environment that the launcher left.
#include <functional>
#include <memory>
#include <string>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// How the processes of a job find each other.
struct Launch {
  enum class By { nobody, mpi, store } by = By::nobody;
  std::string launcher;  ///< "torchrun" or "srun", for messages; of `store`
  int rank = 0, size = 1;
  std::string host;  ///< of rank 0's store
  int port = 0;
};

/// Value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char*)>;

/// MPI where an MPI launcher started this process (Open MPI, or PMI or PMIx of srun); a store at
/// MASTER_ADDR:MASTER_PORT under torchrun (RANK, WORLD_SIZE), and under srun without MPI (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS) where these two are set; else nobody. Errors: UserError(usage) where the
/// environment counts several processes and does not say how they find each other, where a number is missing
/// or out of range, and where two launchers disagree.
Launch read_launch(const Environment& environment);

/// The communicator of read_launch for this process's environment. Errors: also those of the engines.
std::unique_ptr<Communicator> make_communicator();

/// True when the environment says that an MPI launcher started this process.
bool launched_by_mpi();

}  // namespace assay::impl
