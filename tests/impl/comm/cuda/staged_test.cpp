// labels: unit parity gpu
// ranks: 2 4
// The ranks of one GPU: every collective through the host, by MPI. Started by mpirun.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <unistd.h>

#include "impl/comm/launch.hpp"
#include "impl/comm/staged_communicator.hpp"
#include "impl/run/start/rank_device.hpp"
#include "tests/impl/comm/collectives.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::staged_test {
namespace {

struct Ranks {
  std::string missing;  ///< why there is nothing to test on
  std::unique_ptr<Communicator> world;
  at::Device device{at::kCPU};
};

Ranks start_ranks() {
  Ranks ranks;
  ranks.missing = tests::no_gpu();
  if (!ranks.missing.empty()) return ranks;
  alarm(240);
  auto control = make_communicator();
  if (control->engine() != "mpi") {
    ranks.missing =
        "needs several ranks under mpirun, which may share a GPU: these are of " + control->engine();
    return ranks;
  }
  ranks.device = run::rank_device(spec::Device::cuda, *control, run::Seating::first_gpu);
  c10::cuda::set_device(ranks.device.index());
  ranks.world = make_staged_communicator(std::move(control), ranks.device);
  return ranks;
}

Ranks& ranks() {
  static Ranks started = start_ranks();
  return started;
}
Communicator& world() { return *ranks().world; }
at::Device device() { return ranks().device; }

#define ASSAY_NEEDS_RANKS_OF_ONE_GPU() \
  if (!ranks().missing.empty()) GTEST_SKIP() << ranks().missing

TEST(StagedImpl, DoesWhatEveryEngineDoes) {
  ASSAY_NEEDS_RANKS_OF_ONE_GPU();
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
  ASSAY_NEEDS_RANKS_OF_ONE_GPU();
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
