#pragma once
// The GPUs of this test's ranks, one each, started by any launcher; what does not come to an end in two
// minutes is ended.
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "impl/comm/launch.hpp"
#include "impl/comm/nccl_communicator.hpp"
#include "impl/run/start/rank_device.hpp"
#include "tests/support/gpu.hpp"

namespace assay::tests {

struct GpuRanks {
  std::string missing;  ///< why there is nothing to test on; empty: `world` is there
  std::unique_ptr<impl::Communicator> world;
  at::Device device{at::kCPU};
};

/// `reason`: why this process has no GPU.
inline GpuRanks start_gpu_ranks(const std::string& reason) {
  GpuRanks ranks;
  alarm(120);
  auto control = impl::make_communicator();
  if (control->size() < 2) {
    ranks.missing = "needs several ranks, each with a GPU: this is one process";
    return ranks;
  }
  int gpus = 0;
  for (const std::string& text : control->all_gather(reason.empty() ? "GPU" : "")) gpus += text == "GPU";
  const int visible = reason.empty() ? c10::cuda::device_count() : 0;
  bool enough = gpus == control->size();
  for (const std::string& text : control->all_gather(std::to_string(visible)))
    enough = enough && std::stoi(text) >= control->size();
  if (!enough) {
    ranks.missing = "needs " + std::to_string(control->size()) + " GPUs, there are " +
                    std::to_string(visible) + (reason.empty() ? "" : ": " + reason);
    return ranks;
  }
  ranks.device = impl::run::rank_device(spec::Device::cuda, *control);
  ranks.world = impl::make_nccl_communicator(std::move(control), ranks.device);
  return ranks;
}

inline GpuRanks& gpu_ranks() {
  static GpuRanks ranks = start_gpu_ranks(no_gpu());
  return ranks;
}

}  // namespace assay::tests

#define ASSAY_NEEDS_GPU_RANKS()                                    \
  do {                                                             \
    const std::string& assay_missing = tests::gpu_ranks().missing; \
    if (!assay_missing.empty()) GTEST_SKIP() << assay_missing;     \
  } while (false)
