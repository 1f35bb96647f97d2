#include "impl/machine/probe.hpp"

#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <torch/version.h>

#include "impl/machine/architectures.hpp"
#include "impl/machine/device_choice.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::run {
namespace {

using spec::json_string;

/// 13000 is "13.0" (cudaRuntimeGetVersion: 1000 * major + 10 * minor).
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// 22809 is "2.28.9" (nccl.h: 10000 * major + 100 * minor + patch); cuDNN 9 counts alike (91501 is "9.15.1").
std::string library_version(long number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

void add(std::string& json, const std::string& name, const std::string& content) {
  json += (json.empty() ? "" : ",") + json_string(name) + ':' + content;
}

void add_cuda(std::string& json) {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess)
    add(json, "cuda_runtime", json_string(cuda_version(version)));
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
    add(json, "cuda_driver", json_string(cuda_version(version)));
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) add(json, "cuda_error", json_string(cudaGetErrorString(error)));
  std::string devices;
  for (int device = 0; error == cudaSuccess && device < count; ++device) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    std::string fields;
    add(fields, "name", json_string(properties.name));
    add(fields, "memory_bytes", std::to_string(properties.totalGlobalMem));
    add(fields, "compute_capability",
        json_string(std::to_string(properties.major) + "." + std::to_string(properties.minor)));
    add(fields, "code_runs",
        runs_on(compiled_architectures(), 10 * properties.major + properties.minor) ? "true" : "false");
    devices += (devices.empty() ? "{" : ",{") + fields + '}';
  }
  add(json, "devices", '[' + devices + ']');
  add(json, "architectures", json_string(describe(compiled_architectures())));
  if (const std::string fault = gpu_fault(look_at_gpu()); !fault.empty())
    add(json, "gpu_fault", json_string(fault));
}

void add_libraries(std::string& json) {
  add(json, "torch", json_string(TORCH_VERSION));
  if (at::globalContext().hasCuDNN())
    add(json, "cudnn", json_string(library_version(at::globalContext().versionCuDNN())));
  // libtorch brings NCCL; its header is not needed for one number.
  using NcclGetVersion = int (*)(int*);
  int version = 0;
  if (const auto get = reinterpret_cast<NcclGetVersion>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
      get && get(&version) == 0)
    add(json, "nccl", json_string(library_version(version)));
}

}  // namespace

std::string probe_json() {
  std::string json;
  add_libraries(json);
  add_cuda(json);
  return '{' + json + '}';
}

}  // namespace assay::impl::run
