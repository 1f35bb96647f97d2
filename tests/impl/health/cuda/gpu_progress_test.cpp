// labels: unit gpu
// How far a GPU has come, seen from the host while the GPU is at work.
#include "impl/health/gpu_progress.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/gpu.hpp"

namespace assay::impl::gpu_progress_test {
namespace {

TEST(GpuProgressCuda, CountsWhatTheGpuHasComeTo) {
  ASSAY_NEEDS_GPU();
  const at::Device device(at::kCUDA, 0);
  GpuProgress progress(device);
  const auto wait = [&] { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); };
  EXPECT_EQ(progress.reached(), 0);
  progress.begin();
  wait();
  EXPECT_EQ(progress.reached(), 1);
  const auto begin = std::chrono::steady_clock::now();
  at::cuda::sleep(1'000'000'000);  // half a second
  progress.begin();
  progress.begin();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200)) << "the host waited";
  EXPECT_EQ(progress.reached(), 1);
  wait();
  EXPECT_EQ(progress.reached(), 3);
}

}  // namespace
}  // namespace assay::impl::gpu_progress_test
