#pragma once
// Ranks that share one GPU: every collective through the host, by Gloo, where ASSAY_COMMUNICATOR=staged asks
// for that.
#include <c10/cuda/CUDAFunctions.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "impl/comm/launch.hpp"
#include "impl/comm/staged_communicator.hpp"
#include "impl/run/start/rank_device.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::tests {

inline GpuRanks start_staged_ranks() {
  GpuRanks ranks;
  ranks.missing = no_gpu();
  if (!ranks.missing.empty()) return ranks;
  alarm(240);
  auto control = impl::make_communicator();
  if (control->size() < 2 || !impl::staged_is_wanted()) {
    ranks.missing = "needs several ranks that share a GPU: ASSAY_COMMUNICATOR=staged run_ranks N ...";
    return ranks;
  }
  ranks.device = impl::run::rank_device(spec::Device::cuda, *control, impl::run::Seating::first_gpu);
  c10::cuda::set_device(ranks.device.index());
  ranks.world = impl::make_staged_communicator(std::move(control), ranks.device);
  return ranks;
}

/// Started once, and kept until the program ends.
inline GpuRanks& staged_ranks() {
  static GpuRanks started = start_staged_ranks();
  return started;
}

/// Ranks of one GPU, through the host, where they are asked for; otherwise a GPU each, through NCCL.
inline GpuRanks& shared_or_own_gpus() { return impl::staged_is_wanted() ? staged_ranks() : gpu_ranks(); }

#define ASSAY_NEEDS_STAGED_RANKS() \
  if (!assay::tests::staged_ranks().missing.empty()) GTEST_SKIP() << assay::tests::staged_ranks().missing

}  // namespace assay::tests
