// labels: fault gpu multigpu
// ranks: 2 4
// A rank whose kernels wait for one that never comes lets them go.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <thread>

#include "impl/comm/let_go.hpp"
#include "spec/error.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::let_go_test {
namespace {

/// The last of the process: its communicators are gone afterwards.
TEST(NcclImpl, ACollectiveThatARankStaysAwayFromIsLetGo) {
  ASSAY_NEEDS_GPU_RANKS();
  Communicator& world = *tests::gpu_ranks().world;
  const at::Tensor x = at::ones({1 << 20}, at::TensorOptions(at::kFloat).device(tests::gpu_ranks().device));
  world.all_reduce_sum(x);
  world.settle();
  EXPECT_EQ(x[7].item<float>(), static_cast<float>(world.size()));
  if (world.rank() == 0) {
    world.begin_all_reduce_sum(x);  // the others do not
    const auto begin = std::chrono::steady_clock::now();
    std::thread watch([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      let_go_of_all();
    });
    world.wait_all();
    try {
      world.settle();
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::peer_lost);
    }
    watch.join();
    c10::cuda::device_synchronize();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    let_go_of_all();
  }
  EXPECT_THROW(world.begin_all_reduce_sum(x), UserError);
}

}  // namespace
}  // namespace assay::impl::let_go_test
