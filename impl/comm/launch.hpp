#pragma once
// Which process of which job this is, by the environment that the launcher left.
#include <functional>
#include <memory>
#include <string>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// How this process finds the others of its job: in a key-value store at host:port.
struct Launch {
  std::string launcher{};  ///< "assay", "torchrun", "srun", "mpirun" or "PMI"; empty: the process is alone
  int rank = 0;            ///< -1: numbered when the hosts meet
  int size = 1;
  bool one_host = false;  ///< the launcher says that all processes are on this host
  /// Of `assay train --ranks N --of TOTAL`, which knows its own N processes alone: one key for these, and
  /// which of them this is. No key: the launcher has numbered all ranks.
  std::string host_key{};
  int local_rank = 0, local_size = 1;
  std::string host{};
  int port = 0;
  /// Of the process that serves the store: a socket that listens there already; -1: it opens one.
  int listener = -1;
  bool served = false;  ///< the launcher serves the store itself
  std::string keys{};   ///< what the job's keys begin with: a restarted job has keys of its own
};

/// Value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char*)>;

/// Of `assay train --ranks` and torchrun (WORLD_SIZE, RANK), else of srun (SLURM_STEP_NUM_TASKS), mpirun
/// (OMPI_COMM_WORLD_SIZE) or another launcher that speaks PMI (PMI_SIZE); all with MASTER_ADDR and
/// MASTER_PORT. Errors: UserError(usage) where the environment counts several processes and does not say how
/// they find each other, where a number is missing or out of range, and where two launchers disagree.
Launch read_launch(const Environment& environment);

/// The communicator of read_launch for this process's environment. `stopped`: whether the process was asked
/// to stop, which ends the wait for others. Errors: also those of the engines.
std::unique_ptr<Communicator> make_communicator(const std::function<bool()>& stopped = {});

}  // namespace assay::impl
