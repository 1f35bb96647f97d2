#include "impl/comm/stream_words.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace assay::impl {

namespace {
using WriteValue = decltype(cuStreamWriteValue32);

/// A function of the driver, which programs are not linked to.
WriteValue* write_value() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned since = 12000;  // CUDA version whose signatures cuda.h declares
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &found, since, cudaEnableDefault, &status);
  if (error != cudaSuccess || status != cudaDriverEntryPointSuccess || !found)
    throw std::runtime_error("the driver has no cuStreamWriteValue32");
  return reinterpret_cast<WriteValue*>(found);
}
}  // namespace

void write_word(c10::cuda::CUDAStream stream, void* to, std::uint32_t value) {
  static WriteValue* const write = write_value();
  const CUresult status =
      write(stream, reinterpret_cast<CUdeviceptr>(to), value, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("cuStreamWriteValue32 failed with CUDA driver error " + std::to_string(status));
}

}  // namespace assay::impl
