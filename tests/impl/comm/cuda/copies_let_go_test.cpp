// labels: fault gpu multigpu
// ranks: 2 4
// Ranks whose copies wait for one that never comes let them go.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "impl/comm/let_go.hpp"
#include "spec/error.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::copies_let_go_test {
namespace {

/// The gather comes behind the sum, on the GPU: until the sum is let go of, nothing of the gather is done.
/// The last of the process: its communicators are gone afterwards.
TEST(PeerCopiesImpl, AGatherAndASumThatARankStaysAwayFromAreLetGo) {
  ASSAY_NEEDS_GPU_RANKS();
  Communicator& world = *tests::gpu_ranks().world;
  const auto options = at::TensorOptions(at::kFloat).device(tests::gpu_ranks().device);
  const at::Tensor shard = at::full({1 << 20}, world.rank(), options),
                   whole = at::zeros({world.size() << 20}, options);
  const at::Tensor gradient = at::ones({world.size() << 20}, options), sum = at::zeros({1 << 20}, options);
  const auto handle = world.gather_by_copies(shard),
             of_sums = world.scatter_by_copies(gradient, at::empty({(world.size() - 1) << 20}, options));
  world.wait(world.begin_all_gather(shard, whole));
  world.wait(world.begin_reduce_scatter_sum(gradient, sum));
  world.settle();
  EXPECT_EQ(world.gathers_by_copies(), 1);
  EXPECT_EQ(world.scatters_by_copies(), 1);
  EXPECT_EQ(whole[-1].item<float>(), static_cast<float>(world.size() - 1));
  EXPECT_EQ(sum[-1].item<float>(), static_cast<float>(world.size()));
  if (world.rank() + 1 < world.size()) {
    world.wait(world.begin_reduce_scatter_sum(gradient, sum));  // the last rank does not
    world.begin_all_gather(shard, whole);
    at::cuda::CUDAEvent reached(cudaEventDisableTiming);
    reached.record();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_FALSE(reached.query()) << "nobody waited for the last rank";
    std::chrono::duration<double> took{};
    std::thread watch([&] {
      // One rank after the other, as each detects it: meetings of the later ones come over the words of the
      // first.
      std::this_thread::sleep_for(std::chrono::milliseconds(500 + 200 * world.rank()));
      const auto begin = std::chrono::steady_clock::now();
      let_go_of_all();
      took = std::chrono::steady_clock::now() - begin;
    });
    watch.join();
    EXPECT_LT(took.count(), 2) << "[s]: patience ran out before the streams were free";
    const auto begin = std::chrono::steady_clock::now();
    c10::cuda::device_synchronize();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    std::cout << "rank " << world.rank() << " let go within " << took.count() << " s" << std::endl;
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    let_go_of_all();
  }
  EXPECT_THROW(world.begin_all_gather(shard, whole), UserError);
  EXPECT_THROW(world.begin_reduce_scatter_sum(gradient, sum), UserError);
  world.barrier();  // of the CPUs: nobody's memory goes while others read it
}

}  // namespace
}  // namespace assay::impl::copies_let_go_test
