#pragma once
#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Refuses the thread level `provided` that MPI_Init_thread gave when it is below MPI_THREAD_FUNNELED: the
/// loader and the CPU loops have threads of their own. Errors: UserError(usage), with the library's name.
void require_thread_level(int provided);

/// Initialises MPI on first use and finalises it at exit. CPU tensors only. Errors: UserError(peer_lost)
/// naming the failing call when MPI reports an error; those of require_thread_level.
std::unique_ptr<Communicator> make_mpi_communicator();

}  // namespace assay::impl
