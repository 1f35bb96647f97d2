#include "impl/health/gpu_progress.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <new>

#include "impl/comm/stream_words.hpp"

namespace assay::impl {

namespace {
std::shared_ptr<std::atomic<std::uint32_t>> word_of_the_host() {
  void* memory = nullptr;
  C10_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(std::atomic<std::uint32_t>), cudaHostAllocDefault));
  // A GPU that hangs would have cudaFreeHost wait for it; the process's end frees the page.
  return {new (memory) std::atomic<std::uint32_t>(0), [](auto*) {}};
}
}  // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the GPU writes the word itself");

GpuProgress::GpuProgress(at::Device device) : device_(device), word_(word_of_the_host()) {}

void GpuProgress::begin() {
  const std::int64_t number = ++given_;  // first: what the GPU has come to, it was given
  write_word(c10::cuda::getCurrentCUDAStream(device_.index()), word_.get(),
             static_cast<std::uint32_t>(number));
}

std::int64_t GpuProgress::reached() const {
  const std::uint32_t word = *word_;  // ahead of given_, which is never below it
  const std::int64_t given = given_;
  const std::uint32_t ahead = static_cast<std::uint32_t>(given) - word;
  return given - static_cast<std::int64_t>(ahead);
}

}  // namespace assay::impl
