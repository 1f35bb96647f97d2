#include "impl/comm/stream_word.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <new>
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

std::shared_ptr<std::atomic<std::uint32_t>> word_of_the_host() {
  void* memory = nullptr;
  C10_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(std::atomic<std::uint32_t>), cudaHostAllocDefault));
  // A GPU that hangs would have cudaFreeHost wait for it; the process's end frees the page.
  return {new (memory) std::atomic<std::uint32_t>(0), [](auto*) {}};
}
}  // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the GPU writes the word itself");

StreamWord::StreamWord(at::Device device) : device_(device), word_(word_of_the_host()) {}

void StreamWord::write(std::uint32_t value) {
  static WriteValue* const write = write_value();
  const CUresult status =
      write(c10::cuda::getCurrentCUDAStream(device_.index()).stream(),
            reinterpret_cast<CUdeviceptr>(word_.get()), value, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("cuStreamWriteValue32 failed with CUDA driver error " + std::to_string(status));
}

}  // namespace assay::impl
