#pragma once
#include "impl/parallel/communicator.hpp"

namespace assay::impl {

/// True when the environment says that an MPI launcher started this process (Open MPI, or PMI/PMIx of srun).
bool launched_by_mpi();

/// Initialises MPI on first use and finalises it at exit. CPU tensors only. Errors: UserError(peer_lost)
/// naming the failing call when MPI reports an error.
std::unique_ptr<Communicator> make_mpi_communicator();

}  // namespace assay::impl
