#pragma once
// What `assay doctor` makes of GPUs, CUDA and its libraries.
#include <optional>
#include <string>
#include <vector>

#include "impl/cli/doctor/machine.hpp"

namespace assay::impl::cli {

/// One GPU as the trainer's probe sees it.
struct ProbedGpu {
  std::string name;
  int capability = 0;     ///< 90 for compute capability 9.0; 0: unknown
  bool code_runs = true;  ///< the trainer holds code for it
};

/// What the trainer's probe (impl/machine/probe.hpp) printed; what it did not know is empty.
struct Probe {
  std::string torch, cuda_runtime, cuda_driver, cudnn, nccl, cuda_error, gpu_fault, architectures;
  std::vector<ProbedGpu> gpus;
};

/// Nothing where there was no probe, or it did not print its object.
std::optional<Probe> probed(const Machine& machine);

/// Driver and models by the kernel's list: asked without the trainer.
Check gpu_check(const Machine& machine);

/// "cuda": libraries and usable GPUs; "kernels": for which GPUs the trainer holds code; and, where a GPU of
/// the Blackwell generation is seen, "blackwell": what this machine lacks for it.
std::vector<Check> gpu_checks(const Machine& machine, const Probe& probe);

}  // namespace assay::impl::cli
