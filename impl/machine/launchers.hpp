#pragma once
// How launchers count the processes that they start.

namespace assay::impl {

/// The variables in which a launcher counts the processes that it starts. A batch script of Slurm has no
/// step: only srun sets the number of a step's tasks.
struct LauncherVariables {
  const char *launcher, *size, *rank, *here;  ///< here: those of this host
};
inline constexpr LauncherVariables launchers[] = {
    {"torchrun", "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", nullptr},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"}};

}  // namespace assay::impl
