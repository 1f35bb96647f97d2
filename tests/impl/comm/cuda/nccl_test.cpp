// labels: unit parity gpu multigpu
// ranks: 2 4
// NCCL's collectives through our interface, and their order with the work of the current stream.
#include <ATen/ATen.h>

#include "tests/impl/comm/collectives.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::nccl_test {
namespace {

Communicator& world() { return *tests::gpu_ranks().world; }
at::Device device() { return tests::gpu_ranks().device; }

TEST(NcclImpl, SumsScattersAndGathers) {
  ASSAY_NEEDS_GPU_RANKS();
  EXPECT_EQ(world().engine(), "nccl");
  tests::expect_collectives(world(), device());
  tests::expect_tickets_in_order(world(), device());
  tests::expect_groups(world(), device());
  tests::expect_refusals(world(), device());
}

TEST(NcclImpl, TakesMaximaAndMovesMessages) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_maxima_and_messages(world(), device());
  tests::expect_all_kinds_in_flight(world(), device());
  tests::expect_messages_in_groups(world(), device());
  tests::expect_refused_messages(world(), device());
}

TEST(NcclImpl, TensorsOfTheHostGoAroundTheGpu) {
  ASSAY_NEEDS_GPU_RANKS();
  const at::Tensor sum = at::full({3}, world().rank() + 1, at::kLong);
  world().all_reduce_sum(sum);
  EXPECT_EQ(sum[2].item<std::int64_t>(), world().size() * (world().size() + 1) / 2);
}

/// Without events between the streams, a collective would read before a long kernel has written, or a kernel
/// before the collective has.
TEST(NcclImpl, CollectivesStandInTheOrderOfTheStream) {
  ASSAY_NEEDS_GPU_RANKS();
  const auto options = at::TensorOptions(at::kFloat).device(device());
  const at::Tensor large = at::rand({4096, 4096}, options);
  for (int round = 0; round < 20; ++round) {
    at::Tensor x = at::zeros({1 << 22}, options);
    at::Tensor slow = large;
    for (int i = 0; i < 4; ++i) slow = at::matmul(slow, large) * 1e-4;
    x.add_(slow.flatten().narrow(0, 0, 1).mul(0)).add_(1 + round);
    const auto ticket = world().begin_all_reduce_sum(x);
    world().wait(ticket);
    const at::Tensor after = x * 2;
    x.zero_();
    EXPECT_TRUE(at::equal(after, at::full_like(after, 2.0 * world().size() * (1 + round)))) << round;
  }
  world().settle();
}

/// Memory that is freed while a collective still reads it is not given to anyone else.
TEST(NcclImpl, TensorsMayBeForgottenOnceTheyAreWaitedFor) {
  ASSAY_NEEDS_GPU_RANKS();
  const auto options = at::TensorOptions(at::kFloat).device(device());
  std::vector<std::pair<at::Tensor, double>> results;
  for (int i = 0; i < 50; ++i) {
    const at::Tensor shard = at::full({1 << 18}, i, options);
    const at::Tensor whole = at::empty({world().size() * shard.numel()}, options);
    world().wait(world().begin_all_gather(shard, whole));
    results.emplace_back(whole.sum(), static_cast<double>(i) * static_cast<double>(whole.numel()));
  }
  for (const auto& [sum, wanted] : results) EXPECT_EQ(sum.item<double>(), wanted);
}

/// A CPU that runs ahead of the GPU fills no memory: what was waited for is free for the current stream at
/// once.
TEST(NcclImpl, MemoryIsFreeOnceItsCollectiveIsWaitedFor) {
  ASSAY_NEEDS_GPU_RANKS();
  const auto options = at::TensorOptions(at::kFloat).device(device());
  const at::Tensor large = at::rand({8192, 8192}, options);
  world().all_reduce_sum(large);
  const auto gathered_at = [&] {
    const at::Tensor shard = at::zeros({1 << 20}, options);
    const at::Tensor whole = at::empty({world().size() * shard.numel()}, options);
    world().wait(world().begin_all_gather(shard, whole));
    return std::pair(shard.data_ptr(), whole.data_ptr());
  };
  const auto first = gathered_at();
  at::Tensor slow = large;
  for (int i = 0; i < 8; ++i) slow = at::matmul(slow, large);  // some 100 ms, which the CPU does not wait for
  for (int i = 0; i < 4; ++i) EXPECT_EQ(gathered_at(), first) << i;
  world().settle();
}

}  // namespace
}  // namespace assay::impl::nccl_test
