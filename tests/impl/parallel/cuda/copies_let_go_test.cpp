// labels: fault gpu multigpu
// ranks: 2 4
// A rank whose copies wait for one that never comes lets them go.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <thread>

#include "impl/watch/let_go.hpp"
#include "spec/error.hpp"
#include "tests/impl/parallel/cuda/gpu_ranks.hpp"

namespace assay::impl::copies_let_go_test {
namespace {

/// The last of the process: its communicators are gone afterwards.
TEST(PeerCopiesImpl, AGatherAndASumThatARankStaysAwayFromAreLetGo) {
  ASSAY_NEEDS_GPU_RANKS();
  Communicator& world = *tests::gpu_ranks().world;
  const auto options = at::TensorOptions(at::kFloat).device(tests::gpu_ranks().device);
  const at::Tensor share = at::full({1 << 20}, world.rank(), options),
                   whole = at::zeros({world.size() << 20}, options);
  const at::Tensor gradient = at::ones({world.size() << 20}, options), sum = at::zeros({1 << 20}, options);
  const auto handle = world.gather_by_copies(share),
             of_sums = world.scatter_by_copies(gradient, at::empty({(world.size() - 1) << 20}, options));
  world.wait(world.begin_all_gather(share, whole));
  world.wait(world.begin_reduce_scatter_sum(gradient, sum));
  world.settle();
  EXPECT_EQ(world.gathers_by_copies(), 1);
  EXPECT_EQ(world.scatters_by_copies(), 1);
  EXPECT_EQ(whole[-1].item<float>(), static_cast<float>(world.size() - 1));
  EXPECT_EQ(sum[-1].item<float>(), static_cast<float>(world.size()));
  if (world.rank() == 0) {
    world.begin_all_gather(share, whole);  // the others do not
    world.begin_reduce_scatter_sum(gradient, sum);
    const auto begin = std::chrono::steady_clock::now();
    std::thread watch([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      let_go_of_all();
    });
    watch.join();
    c10::cuda::device_synchronize();
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, std::chrono::seconds(1));
    EXPECT_LT(took, std::chrono::seconds(20));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    let_go_of_all();
  }
  EXPECT_THROW(world.begin_all_gather(share, whole), UserError);
  EXPECT_THROW(world.begin_reduce_scatter_sum(gradient, sum), UserError);
}

}  // namespace
}  // namespace assay::impl::copies_let_go_test
