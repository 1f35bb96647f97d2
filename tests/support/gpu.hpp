#pragma once
// Tests that need a GPU skip without one, and say why.
#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::tests {

/// Why there is no GPU to test on; empty if there is one.
inline std::string no_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("no usable NVIDIA GPU: ") + cudaGetErrorString(status);
  return count == 0 ? "no NVIDIA GPU on this machine" : "";
}

}  // namespace assay::tests

#define ASSAY_NEEDS_GPU()                                      \
  do {                                                         \
    const std::string assay_reason = ::assay::tests::no_gpu(); \
    if (!assay_reason.empty()) GTEST_SKIP() << assay_reason;   \
  } while (false)
