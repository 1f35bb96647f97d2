#pragma once
// What every CUDA launcher shares. Kernels are compiled without ATen headers: launchers take pointers, the
// glue in <op>_cuda.cpp takes tensors.
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "spec/error.hpp"
#include "spec/tolerance.hpp"

/// In front of each function that a .cu file defines: a build without kernels (ASSAY_CUDA=OFF) links without
/// them, and no run computes on a GPU there (gpu_fault, impl/machine/device_choice.hpp).
#define ASSAY_KERNEL [[gnu::weak]]

namespace assay::impl::cuda {

/// Throws when a CUDA runtime call failed: expression, place and the runtime's own words.
inline void check(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw UserError(ExitCode::bug, std::string("CUDA call failed: ") + expression + " at " + file + ":" +
                                     std::to_string(line) + ": " + cudaGetErrorString(status));
}
#define ASSAY_CUDA_CHECK(expression) ::assay::impl::cuda::check((expression), #expression, __FILE__, __LINE__)
/// A launch reports its own errors only through this.
#define ASSAY_CUDA_CHECK_LAUNCH() ASSAY_CUDA_CHECK(cudaGetLastError())

/// True when `pointer` and a row of `row_bytes` allow 16-byte accesses to every row.
inline bool aligned_16(const void* pointer, std::int64_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && row_bytes % 16 == 0;
}
/// Whether the gain of a norm can be read by vectors of as many entries as rows of bf16 are: 32 bytes of
/// fp32.
inline bool aligned_gain(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 32 == 0; }

}  // namespace assay::impl::cuda
