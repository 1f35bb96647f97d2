#pragma once
// Tests that need a GPU skip without one, and say why.
#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "impl/machine/architectures.hpp"

namespace assay::tests {

/// Why there is no GPU to test on; empty if there is one.
inline std::string no_gpu() {
  if (impl::run::compiled_architectures().empty())
    return "no usable NVIDIA GPU: built without CUDA kernels (ASSAY_CUDA=OFF)";
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
