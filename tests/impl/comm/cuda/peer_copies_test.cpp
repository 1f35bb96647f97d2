// labels: unit parity gpu multigpu
// ranks: 2 4
// Gathers by copy engines: NCCL's bits, ordered with the current stream and with the other ranks.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <random>
#include <thread>

#include "impl/data/open_source.hpp"
#include "impl/machine/host.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/trainer.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/load.hpp"
#include "tests/impl/comm/collectives.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::peer_copies_test {
namespace {

Communicator& world() { return *tests::gpu_ranks().world; }
at::Device device() { return tests::gpu_ranks().device; }
at::TensorOptions floats() { return at::TensorOptions(at::kFloat).device(device()); }

at::Tensor gathered(const at::Tensor& shard) {
  at::Tensor whole = at::full({world().size() * shard.numel()}, 77, shard.options());
  world().wait(world().begin_all_gather(shard, whole));
  return whole;
}

/// Counts what copy engines gather while it lives.
class Copies {
 public:
  std::int64_t operator()() const { return world().gathers_by_copies() - before_; }

 private:
  const std::int64_t before_ = world().gathers_by_copies();
};

TEST(PeerCopiesImpl, GathersAreNcclsBitForBit) {
  ASSAY_NEEDS_GPU_RANKS();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong})
    for (const std::int64_t n : {1, 5, 4099, 1 << 22}) {
      const at::Tensor memory =
          at::randn({3 * n}, floats()).add_(world().rank()).mul_(1000).to(type).contiguous();
      const at::Tensor shard = memory.narrow(0, n, n), by_nccl = gathered(shard);
      const auto handle = world().gather_by_copies(memory);
      const Copies copies;
      EXPECT_TRUE(at::equal(gathered(shard), by_nccl)) << at::toString(type) << " " << n;
      EXPECT_EQ(copies(), 1);
    }
}

TEST(PeerCopiesImpl, GathersInPlaceToo) {
  ASSAY_NEEDS_GPU_RANKS();
  const std::int64_t n = 100'003, ranks = world().size();
  const at::Tensor memory = at::zeros({(ranks + 1) * n}, floats());
  const auto handle = world().gather_by_copies(memory);
  const at::Tensor whole = memory.narrow(0, n, ranks * n);
  const Copies copies;
  for (int round = 0; round < 10; ++round) {
    whole.zero_();
    whole.narrow(0, world().rank() * n, n).fill_(10 * round + world().rank());
    world().wait(world().begin_all_gather(whole.narrow(0, world().rank() * n, n), whole));
    for (std::int64_t r = 0; r < ranks; ++r) {
      const at::Tensor part = whole.narrow(0, r * n, n);
      EXPECT_TRUE(at::equal(part, at::full_like(part, static_cast<double>(10 * round + r)))) << round;
    }
  }
  EXPECT_EQ(copies(), 10);
}

/// Ranks that come late on the GPU or on the CPU: no shard is read before it is written, and none is written
/// over while another rank reads it. Without the meetings before or behind the copies this fails.
TEST(PeerCopiesImpl, ShardsAreReadBetweenTheirOwnersWrites) {
  ASSAY_NEEDS_GPU_RANKS();
  const std::int64_t n = 1 << 24;
  const at::Tensor shard = at::zeros({n}, floats()), whole = at::zeros({world().size() * n}, floats()),
                   large = at::rand({4096, 4096}, floats());
  const auto handle = world().gather_by_copies(shard);
  std::mt19937 draw(static_cast<unsigned>(17 + world().rank()));
  std::vector<at::Tensor> wrong;
  const Copies copies;
  for (int round = 0; round < 60; ++round) {
    at::Tensor slow = large;
    for (unsigned i = draw() % 4; i > 0; --i) slow = at::matmul(slow, large) * 1e-4;
    if (draw() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(draw() % 20));
    shard.fill_(100 * world().rank() + round);
    world().wait(world().begin_all_gather(shard, whole));
    shard.fill_(-1);  // at once: others may still be reading, were it not for the second meeting
    for (std::int64_t r = 0; r < world().size(); ++r)
      wrong.push_back(whole.narrow(0, r * n, n).ne(static_cast<double>(100 * r + round)).sum());
  }
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(wrong[i].item<std::int64_t>(), 0) << i;
  EXPECT_EQ(copies(), 60);
  world().settle();
}

/// As in a backward: gathers begin among reductions, and each is waited for without the others.
TEST(PeerCopiesImpl, GathersAndReductionsHaveOrdersOfTheirOwn) {
  ASSAY_NEEDS_GPU_RANKS();
  const std::int64_t n = 1 << 20, ranks = world().size();
  const at::Tensor shards = at::zeros({8 * n}, floats());
  const auto handle = world().gather_by_copies(shards);
  const Copies copies;
  for (int round = 0; round < 20; ++round) {
    std::vector<at::Tensor> wholes, sums;
    std::vector<Communicator::Ticket> gathers, reductions;
    for (std::int64_t i = 0; i < 8; ++i) {
      const at::Tensor shard = shards.narrow(0, i * n, n);
      shard.fill_(static_cast<double>(round + 10 * i + world().rank()));
      wholes.push_back(at::zeros({ranks * n}, floats()));
      sums.push_back(at::full({n}, static_cast<double>(i + world().rank()), floats()));
      reductions.push_back(world().begin_all_reduce_sum(sums.back()));
      gathers.push_back(world().begin_all_gather(shard, wholes.back()));
    }
    for (std::size_t i : {2u, 1u, 7u}) {
      world().wait(gathers[i]);
      for (std::int64_t r = 0; r < ranks; ++r)
        EXPECT_EQ(wholes[i][r * n + n - 1].item<float>(), static_cast<float>(round + 10 * i + r));
    }
    world().wait_all();
    const double of_ranks = static_cast<double>(ranks * (ranks - 1)) / 2;
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(sums[i][5].item<float>(), static_cast<float>(i * static_cast<std::size_t>(ranks) + of_ranks));
  }
  EXPECT_EQ(copies(), 20 * 8);
}

TEST(PeerCopiesImpl, AHandleThatHasEndedLeavesGathersToNccl) {
  ASSAY_NEEDS_GPU_RANKS();
  const at::Tensor shard = at::full({1000}, world().rank(), floats());
  auto handle = world().gather_by_copies(shard);
  const Copies copies;
  const at::Tensor by_copies = gathered(shard);
  handle.reset();
  EXPECT_TRUE(at::equal(gathered(shard), by_copies));
  EXPECT_EQ(copies(), 1);
  tests::expect_collectives(world(), device());
}

TEST(PeerCopiesImpl, ShardsOutsideOfTheMemoryAreRefused) {
  ASSAY_NEEDS_GPU_RANKS();
  const at::Tensor whole = at::zeros({world().size() * 1000}, floats()),
                   part = whole.narrow(0, world().rank() * 1000, 1000);
  const auto handle = world().gather_by_copies(part);  // in place, the others' parts would be beside it
  EXPECT_THROW(world().begin_all_gather(part, whole), std::invalid_argument);
  world().barrier();
}

TEST(PeerCopiesImpl, UnlikeMemoriesAreRefusedByAllRanks) {
  ASSAY_NEEDS_GPU_RANKS();
  try {
    world().gather_by_copies(at::zeros({world().rank() == 0 ? 100 : 200}, floats()));
    FAIL() << "not refused";
  } catch (const AgreedError& error) {
    EXPECT_NE(std::string(error.what()).find("bytes to share"), std::string::npos) << error.what();
  }
  world().barrier();
  tests::expect_collectives(world(), device());
}

/// What is mapped is the other rank's: the plan of the other way of gathering holds. Sums by copies take what
/// the plan has for the others' parts.
void expect_the_plan_of_memory(const std::vector<std::string>& ways) {
  const c10::InferenceMode no_autograd;
  for (const char* layout : {"zero1", "shard"}) {
    std::vector<std::string> settings = {"model.name=llama-1.36b",
                                         "batch.sequences=8",
                                         "batch.micro=2",
                                         "batch.sequence_length=1024",
                                         "compute.dtype=bf16",
                                         "compute.device=cuda",
                                         std::string("parallel.data=") + layout};
    settings.insert(settings.end(), ways.begin(), ways.end());
    const spec::RunConfig config = spec::load("", settings);
    const spec::ModelSpec model = spec::find_model(config.model);
    const spec::Batch batch = spec::batch_of(config.sequences, config.micro, world().size());
    run::Trainer trainer(config, model, batch, device(), data::open_source(config, model), world());
    trainer.initialise();
    trainer.start_after(0);
    const Communicator& shard = trainer.groups().shard();
    const std::int64_t gathers = shard.gathers_by_copies(),
                       scatters = shard.scatters_by_copies();  // of the layout before
    for (int step = 0; step < 2; ++step) trainer.step(false);
    EXPECT_GT(shard.gathers_by_copies(), gathers);
    EXPECT_EQ(shard.scatters_by_copies() > scatters, config.scatter == spec::MovedBy::copy_engines);
    const double planned =
        run::memory_plan(config, model, batch, device(), trainer.groups().layout()).peak.to_double();
    const auto measured = static_cast<double>(run::device_peak_bytes(device()));
    EXPECT_NEAR(measured, planned, 0.03 * planned) << layout;
    if (world().rank() == 0)
      std::cout << layout << ", " << ways.back() << ": planned " << planned * 1e-9 << " GB, measured "
                << measured * 1e-9 << std::endl;
    world().barrier();
  }
}

TEST(PeerCopiesImpl, ThePlanOfMemoryHolds) {
  ASSAY_NEEDS_GPU_RANKS();
  expect_the_plan_of_memory({"parallel.gather=copy_engines"});
}

TEST(PeerSumsImpl, ThePlanOfMemoryHolds) {
  ASSAY_NEEDS_GPU_RANKS();
  for (const char* reduce : {"parallel.reduce=f32", "parallel.reduce=bf16"})
    expect_the_plan_of_memory({"parallel.gather=copy_engines", "parallel.scatter=copy_engines", reduce});
}

}  // namespace
}  // namespace assay::impl::peer_copies_test
