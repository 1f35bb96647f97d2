// labels: unit parity gpu
// ranks: 2 4
// The ranks of one GPU: every collective through the host, by Gloo.
#include <ATen/ATen.h>

#include "tests/impl/comm/collectives.hpp"
#include "tests/impl/comm/cuda/staged_ranks.hpp"

namespace assay::impl::staged_test {
namespace {

Communicator& world() { return *tests::staged_ranks().world; }
at::Device device() { return tests::staged_ranks().device; }

TEST(StagedImpl, DoesWhatEveryEngineDoes) {
  ASSAY_NEEDS_STAGED_RANKS();
  EXPECT_EQ(device(), at::Device(at::kCUDA, 0));
  for (const at::Device where : {device(), at::Device(at::kCPU)}) {
    tests::expect_collectives(world(), where);
    tests::expect_tickets_in_order(world(), where);
    tests::expect_groups(world(), where);
    tests::expect_refusals(world(), where);
    tests::expect_maxima_and_messages(world(), where);
    tests::expect_all_kinds_in_flight(world(), where);
    tests::expect_messages_in_groups(world(), where);
    tests::expect_refused_messages(world(), where);
  }
}

/// A collective reads what a long kernel before it writes, and kernels behind its wait read its result.
TEST(StagedImpl, CollectivesStandInTheOrderOfTheStream) {
  ASSAY_NEEDS_STAGED_RANKS();
  const auto options = at::TensorOptions(at::kFloat).device(device());
  const at::Tensor large = at::rand({2048, 2048}, options);
  for (int round = 0; round < 5; ++round) {
    at::Tensor x = at::zeros({1 << 20}, options), slow = large;
    for (int i = 0; i < 4; ++i) slow = at::matmul(slow, large) * 1e-4;
    x.add_(slow.flatten().narrow(0, 0, 1).mul(0)).add_(1 + round);
    world().wait(world().begin_all_reduce_sum(x));
    const at::Tensor after = x * 2;
    x.zero_();
    EXPECT_TRUE(at::equal(after, at::full_like(after, 2.0 * world().size() * (1 + round)))) << round;
  }
  world().settle();
}

}  // namespace
}  // namespace assay::impl::staged_test
