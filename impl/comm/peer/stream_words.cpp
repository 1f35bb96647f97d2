#include "impl/comm/peer/stream_words.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace assay::impl {

namespace {
/// A function of the driver, which programs are not linked to.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned since = 12000;  // CUDA version whose signatures cuda.h declares
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &status);
  if (error != cudaSuccess || status != cudaDriverEntryPointSuccess || !found)
    throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<Function*>(found);
}

struct StreamWords {
  decltype(cuStreamWriteValue32)* write;
  decltype(cuStreamWaitValue32)* wait;
};
const StreamWords& stream_words() {
  static const StreamWords functions{driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32"),
                                     driver_function<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32")};
  return functions;
}

void driver_check(CUresult status, const char* call) {
  if (status != CUDA_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed with CUDA driver error " + std::to_string(status));
}
}  // namespace

void write_word(c10::cuda::CUDAStream stream, void* to, std::uint32_t value) {
  driver_check(
      stream_words().write(stream, reinterpret_cast<CUdeviceptr>(to), value, CU_STREAM_WRITE_VALUE_DEFAULT),
      "cuStreamWriteValue32");
}

void await_word(c10::cuda::CUDAStream stream, const void* at, std::uint32_t value) {
  driver_check(
      stream_words().wait(stream, reinterpret_cast<CUdeviceptr>(at), value, CU_STREAM_WAIT_VALUE_GEQ),
      "cuStreamWaitValue32");
}

}  // namespace assay::impl
