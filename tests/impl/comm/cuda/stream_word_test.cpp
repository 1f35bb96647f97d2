// labels: unit gpu
// How far a GPU has come, seen from the host while the GPU is at work.
#include "impl/comm/stream_word.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/gpu.hpp"

namespace assay::impl::stream_word_test {
namespace {

TEST(StreamWordCuda, SaysWhatTheGpuHasComeTo) {
  ASSAY_NEEDS_GPU();
  const at::Device device(at::kCUDA, 0);
  StreamWord word(device);
  const auto wait = [&] { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); };
  EXPECT_EQ(word.read(), 0u);
  word.write(1);
  wait();
  EXPECT_EQ(word.read(), 1u);
  const auto begin = std::chrono::steady_clock::now();
  at::cuda::sleep(1'000'000'000);  // half a second
  word.write(2);
  word.write(3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200)) << "the host waited";
  EXPECT_EQ(word.read(), 1u);
  wait();
  EXPECT_EQ(word.read(), 3u);
}

}  // namespace
}  // namespace assay::impl::stream_word_test
