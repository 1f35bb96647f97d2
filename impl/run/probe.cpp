#include "impl/run/probe.hpp"

#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpi.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

namespace assay::impl::run {
namespace {

using Json = nlohmann::ordered_json;

/// 13000 is "13.0" (cudaRuntimeGetVersion: 1000 * major + 10 * minor).
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// 22809 is "2.28.9" (nccl.h: 10000 * major + 100 * minor + patch); cuDNN 9 counts alike (91501 is "9.15.1").
std::string library_version(long number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

void add_cuda(Json& json) {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) json["cuda_runtime"] = cuda_version(version);
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
    json["cuda_driver"] = cuda_version(version);
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) json["cuda_error"] = cudaGetErrorString(error);
  json["devices"] = Json::array();
  for (int device = 0; error == cudaSuccess && device < count; ++device) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    json["devices"].push_back(
        {{"name", properties.name},
         {"memory_bytes", properties.totalGlobalMem},
         {"compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)}});
  }
}

void add_libraries(Json& json) {
  json["torch"] = TORCH_VERSION;
  if (at::globalContext().hasCuDNN()) json["cudnn"] = library_version(at::globalContext().versionCuDNN());
  // libtorch brings NCCL; its header is not needed for one number.
  using NcclGetVersion = int (*)(int*);
  int version = 0;
  if (const auto get = reinterpret_cast<NcclGetVersion>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
      get && get(&version) == 0)
    json["nccl"] = library_version(version);
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) == MPI_SUCCESS) {
    const std::string whole(text, static_cast<std::size_t>(length));
    json["mpi"] = whole.substr(0, whole.find_first_of(",\n"));
  }
}

}  // namespace

std::string probe_json() {
  Json json;
  add_libraries(json);
  add_cuda(json);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::impl::run
