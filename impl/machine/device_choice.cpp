#include "impl/machine/device_choice.hpp"

#include <cuda_runtime_api.h>

#include "impl/machine/architectures.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {
namespace {

constexpr int least_capability = 80;  // of our kernels: bf16 in tensor cores, cp.async

std::string release(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string of_memory(const GpuFacts& facts) {
  return spec::bytes(facts.memory_bytes - facts.free_bytes) + " of its " + spec::bytes(facts.memory_bytes);
}

/// Text of a CUDA error, and no memory of it.
std::string text_of(cudaError_t error) {
  cudaGetLastError();
  return cudaGetErrorString(error);
}

}  // namespace

GpuFacts look_at_gpu(int device) {
  GpuFacts facts{.kernels = !compiled_architectures().empty()};
  cudaRuntimeGetVersion(&facts.runtime_cuda);
  cudaDriverGetVersion(&facts.driver_cuda);
  if (const cudaError_t error = cudaGetDeviceCount(&facts.devices); error != cudaSuccess) {
    facts.devices = 0;
    facts.error = text_of(error);
    return facts;
  }
  if (facts.devices == 0) return facts;
  cudaDeviceProp properties;
  int mode = cudaComputeModeDefault;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    facts.error = text_of(error);
    return facts;
  }
  facts.name = properties.name;
  facts.major = properties.major, facts.minor = properties.minor;
  facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.code_runs = runs_on(compiled_architectures(), 10 * facts.major + facts.minor);
  if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device) == cudaSuccess) {
    facts.prohibited = mode == cudaComputeModeProhibited;
    facts.exclusive = mode == cudaComputeModeExclusive || mode == cudaComputeModeExclusiveProcess;
  }
  std::size_t free = 0, total = 0;
  cudaSetDevice(device);
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess)
    facts.error = text_of(error);
  facts.free_bytes = static_cast<std::int64_t>(free);
  if (total > 0) facts.memory_bytes = static_cast<std::int64_t>(total);
  return facts;
}

std::string gpu_fault(const GpuFacts& facts) {
  const int capability = 10 * facts.major + facts.minor;
  if (!facts.kernels)
    return "this program was built without CUDA kernels (ASSAY_CUDA=OFF, as ci/demo builds it on a machine "
           "without an NVIDIA driver): run .toolchain/bin/cmake --preset release, then .toolchain/bin/cmake "
           "--build --preset release";
  if (facts.devices == 0) {
    if (facts.driver_cuda == 0) return "this machine has no NVIDIA driver";
    if (facts.driver_cuda < facts.runtime_cuda)
      return "the NVIDIA driver runs CUDA up to " + release(facts.driver_cuda) + ", this program needs " +
             release(facts.runtime_cuda) + ": update the driver";
    return "the NVIDIA driver shows no GPU" + (facts.error.empty() ? "" : " (" + facts.error + ")") +
           "; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  if (capability > 0 && capability < least_capability)
    return facts.name + " is too old: compute capability " + std::to_string(facts.major) + "." +
           std::to_string(facts.minor) + ", and at least 8.0 (A100 and newer) is needed";
  if (capability > 0 && !facts.code_runs)
    return "this program was built without code for " + facts.name + " (compute capability " +
           std::to_string(facts.major) + "." + std::to_string(facts.minor) +
           "): build it with -DASSAY_CUDA_ARCHITECTURES=" + std::to_string(capability) + "-real";
  if (facts.prohibited)
    return facts.name + " lets no program compute (compute mode Prohibited): nvidia-smi -c 0 changes that";
  if (!facts.error.empty() && facts.exclusive)
    return facts.name + " is busy: its compute mode lets in one process, and another one is there (" +
           facts.error + "); nvidia-smi lists it";
  if (!facts.error.empty()) return facts.name + " cannot be used: " + facts.error;
  if (facts.free_bytes < facts.memory_bytes / 10)
    return facts.name + " is busy: other processes hold " + of_memory(facts) +
           "; nvidia-smi lists them, CUDA_VISIBLE_DEVICES chooses another GPU";
  return "";
}

DeviceChoice choose_device(spec::Device wanted, const GpuFacts& facts) {
  if (wanted == spec::Device::cpu) return {};
  const std::string fault = gpu_fault(facts);
  if (wanted == spec::Device::cuda) {
    if (!fault.empty())
      throw UserError(ExitCode::usage,
                      "compute.device=cuda, but no usable NVIDIA GPU was found: " + fault +
                          "; `assay doctor` says more, compute.device=cpu trains on the CPU");
  }
  if (!fault.empty()) {
    if (facts.devices == 0 && facts.driver_cuda == 0) return {};  // a machine without GPU: nothing to say
    return {at::kCPU, "training on the CPU: " + fault};
  }
  DeviceChoice choice{at::Device(at::kCUDA, 0), {}};
  if (facts.free_bytes < facts.memory_bytes / 2)
    choice.notice = "other processes hold " + of_memory(facts) + " of memory on " + facts.name +
                    ": what is left may be too little, and the times are not those of the GPU alone";
  return choice;
}

DeviceChoice choose_device(spec::Device wanted) {
  return choose_device(wanted, wanted == spec::Device::cpu ? GpuFacts() : look_at_gpu());
}

}  // namespace assay::impl::run
