#pragma once
// Whether a run can use this machine's GPU, and why not. What CUDA says is gathered in a plain struct, so
// that the decisions are pure functions, tested without a GPU.
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "spec/config/run_config.hpp"

namespace assay::impl::run {

/// What CUDA and one GPU say. Empty and 0 where there was nothing to ask.
struct GpuFacts {
  int devices = 0;
  std::string error = {};    ///< why the GPUs could not be counted or a context not be made
  int driver_cuda = 0;       ///< newest CUDA that the driver runs, 13000 for 13.0; 0: no driver
  int runtime_cuda = 0;      ///< CUDA that this program was built with
  std::string name = {};     ///< of the GPU
  int major = 0, minor = 0;  ///< compute capability
  bool kernels = true;       ///< this program holds code for some GPU (impl/machine/architectures.hpp)
  bool code_runs = true;     ///< for this one
  bool prohibited = false, exclusive = false;  ///< compute mode
  std::int64_t free_bytes = 0, memory_bytes = 0;
};

/// Asks CUDA. Makes a context on that GPU where it is there. Never fails.
GpuFacts look_at_gpu(int device = 0);

/// Why this GPU cannot train, in one line without a full stop; empty when it can. Needed: a build with
/// kernels, a driver for the CUDA that this program was built with, compute capability 8.0, code for it, a
/// compute mode that lets this process in, and a tenth of the memory free.
std::string gpu_fault(const GpuFacts& facts);

/// The device of a run, and what the user should know of it.
struct DeviceChoice {
  at::Device device = at::kCPU;
  std::optional<std::string> notice;  ///< a GPU is there and not used, or others use much of it
};

/// Of a lone rank: the CPU, or the first GPU. Errors: UserError(usage) where a GPU was asked for and cannot
/// be used, with the reason and what to do. Several ranks: impl/run/start/rank_device.hpp.
DeviceChoice choose_device(spec::Device wanted, const GpuFacts& facts);

/// The same for this machine; no GPU is asked when the CPU is wanted.
DeviceChoice choose_device(spec::Device wanted);

}  // namespace assay::impl::run
