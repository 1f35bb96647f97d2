// labels: unit parity gpu multigpu
// ranks: 2 4
// Sums whose parts come by copy engines: NCCL's bits of two ranks, sums in the order of the ranks of more,
// ordered with the current stream, with gathers and with the other ranks.
#include <ATen/ATen.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/impl/comm/collectives.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::peer_sums_test {
namespace {

Communicator& world() { return *tests::gpu_ranks().world; }
at::TensorOptions floats() { return at::TensorOptions(at::kFloat).device(tests::gpu_ranks().device); }
std::int64_t ranks() { return world().size(); }

/// Room for the others' parts of shards of n elements.
at::Tensor staging_of(std::int64_t n, const at::TensorOptions& options) {
  return at::empty({(ranks() - 1) * n}, options);
}

at::Tensor scattered(const at::Tensor& whole, bool in_place) {
  const std::int64_t n = whole.numel() / ranks();
  const at::Tensor shard =
      in_place ? whole.narrow(0, world().rank() * n, n) : at::full({n}, 77, whole.options());
  world().wait(world().begin_reduce_scatter_sum(whole, shard));
  return shard.clone();
}

/// This rank's part of every rank's whole, added in the order of the ranks, bf16 in fp32 and rounded once.
at::Tensor sum_in_order(const at::Tensor& whole) {
  const at::Tensor all = at::empty({ranks() * whole.numel()}, whole.options());
  world().wait(world().begin_all_gather(whole, all));
  const at::Tensor wide = whole.scalar_type() == at::kBFloat16 ? all.to(at::kFloat) : all,
                   parts = wide.view({ranks(), ranks(), -1}).select(1, world().rank());
  at::Tensor sum = parts[0].clone();
  for (std::int64_t r = 1; r < ranks(); ++r) sum += parts[r];
  return sum.to(whole.scalar_type());
}

/// Counts what copy engines bring to sums while it lives.
class Copied {
 public:
  std::int64_t operator()() const { return world().scatters_by_copies() - before_; }

 private:
  const std::int64_t before_ = world().scatters_by_copies();
};

TEST(PeerSumsImpl, SumsAreInTheOrderOfRanksAndNcclsBitForBitOfTwo) {
  ASSAY_NEEDS_GPU_RANKS();
  at::manual_seed(7 + static_cast<std::uint64_t>(world().rank()));
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const std::int64_t n : {1, 5, 64, 4099, 1 << 22})
      for (const bool in_place : {false, true}) {
        const std::string where =
            std::string(at::toString(type)) + " n=" + std::to_string(n) + (in_place ? " in place" : " apart");
        const at::Tensor numbers = at::randn({ranks() * n + 16}, floats()).to(type),
                         memory = at::empty_like(numbers);
        const at::Tensor whole = memory.narrow(0, 16, ranks() * n);
        memory.copy_(numbers);
        const at::Tensor by_nccl = scattered(whole, in_place);
        memory.copy_(numbers);
        const at::Tensor expected = sum_in_order(whole);
        const auto handle = world().scatter_by_copies(memory, staging_of(n, numbers.options()));
        const Copied copied;
        for (int again = 0; again < 2; ++again) {
          memory.copy_(numbers);
          const at::Tensor by_copies = scattered(whole, in_place);
          EXPECT_TRUE(at::equal(by_copies, expected)) << where;
          if (ranks() == 2) {
            EXPECT_TRUE(at::equal(by_copies, by_nccl)) << where;
          }
        }
        EXPECT_EQ(copied(), 2) << where;
        EXPECT_FALSE(at::equal(by_nccl, numbers.narrow(0, 16 + world().rank() * n, n))) << where;
        world().barrier();
      }
}

/// Ranks that come late on the GPU or on the CPU: no part is read before it is written, and none is written
/// over while another rank reads it. Without the meetings before or behind the copies this fails.
TEST(PeerSumsImpl, PartsAreReadBetweenTheirOwnersWrites) {
  ASSAY_NEEDS_GPU_RANKS();
  const std::int64_t n = 1 << 24;
  const at::Tensor whole = at::zeros({ranks() * n}, floats()), shard = at::zeros({n}, floats()),
                   large = at::rand({4096, 4096}, floats());
  const auto handle = world().scatter_by_copies(whole, staging_of(n, floats()));
  std::mt19937 draw(static_cast<unsigned>(17 + world().rank()));
  std::vector<at::Tensor> wrong;
  const Copied copied;
  for (int round = 0; round < 60; ++round) {
    at::Tensor slow = large;
    for (unsigned i = draw() % 4; i > 0; --i) slow = at::matmul(slow, large) * 1e-4;
    if (draw() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(draw() % 20));
    for (std::int64_t r = 0; r < ranks(); ++r) whole.narrow(0, r * n, n).fill_(100 * (r + 1) + round);
    world().wait(world().begin_reduce_scatter_sum(whole, shard));
    whole.fill_(-1);  // at once: others may still be reading, were it not for the second meeting
    wrong.push_back(shard.ne(static_cast<double>(ranks() * (100 * (world().rank() + 1) + round))).sum());
  }
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(wrong[i].item<std::int64_t>(), 0) << i;
  EXPECT_EQ(copied(), 60);
  world().settle();
}

/// As in a backward: gathers by copies, sums by copies of several sizes and NCCL's reductions begin in turn;
/// the sums share one staging memory, and each is waited for without the others.
TEST(PeerSumsImpl, GathersSumsAndReductionsHaveOrdersOfTheirOwn) {
  ASSAY_NEEDS_GPU_RANKS();
  const std::int64_t n = 1 << 20;
  const at::Tensor shards = at::zeros({8 * n}, floats()), wholes = at::zeros({8 * ranks() * n}, floats());
  const auto of_gathers = world().gather_by_copies(shards),
             of_sums = world().scatter_by_copies(wholes, staging_of(n, floats()));
  const auto of_ranks = static_cast<float>(ranks() * (ranks() - 1)) / 2, count = static_cast<float>(ranks());
  const Copied copied;
  for (int round = 0; round < 20; ++round) {
    std::vector<at::Tensor> gathered, sums, reduced;
    std::vector<Communicator::Ticket> gathers, scatters;
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t part = n >> (i % 3);
      const at::Tensor shard = shards.narrow(0, i * n, n),
                       whole = wholes.narrow(0, i * ranks() * n, ranks() * part);
      shard.fill_(static_cast<double>(round + 10 * i + world().rank()));
      whole.fill_(static_cast<double>(round + 100 * i + world().rank()));
      gathered.push_back(at::zeros({ranks() * n}, floats()));
      sums.push_back(whole.narrow(0, world().rank() * part, part));
      reduced.push_back(at::full({n}, static_cast<double>(i + world().rank()), floats()));
      scatters.push_back(world().begin_reduce_scatter_sum(whole, sums.back()));
      world().begin_all_reduce_sum(reduced.back());
      gathers.push_back(world().begin_all_gather(shard, gathered.back()));
    }
    for (std::size_t i : {2u, 1u, 7u}) {
      world().wait(scatters[i]);
      const float sum = count * static_cast<float>(round + 100 * static_cast<int>(i)) + of_ranks;
      EXPECT_EQ(sums[i].min().item<float>(), sum) << i;
      EXPECT_EQ(sums[i].max().item<float>(), sum) << i;
      world().wait(gathers[i]);
      for (std::int64_t r = 0; r < ranks(); ++r)
        EXPECT_EQ(gathered[i][r * n + n - 1].item<float>(),
                  static_cast<float>(round + 10 * static_cast<int>(i) + r));
    }
    world().wait_all();
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(reduced[i][5].item<float>(), count * static_cast<float>(i) + of_ranks);
  }
  EXPECT_EQ(copied(), 20 * 8);
}

TEST(PeerSumsImpl, AHandleThatHasEndedLeavesSumsToNccl) {
  ASSAY_NEEDS_GPU_RANKS();
  const at::Tensor whole = at::ones({1000 * ranks()}, floats());
  auto handle = world().scatter_by_copies(whole, staging_of(1000, floats()));
  const Copied copied;
  const at::Tensor by_copies = scattered(whole, false);
  handle.reset();
  EXPECT_TRUE(at::equal(scattered(whole, false), by_copies));
  EXPECT_EQ(copied(), 1);
  tests::expect_collectives(world(), tests::gpu_ranks().device);
}

TEST(PeerSumsImpl, TooLittleRoomForTheOthersPartsIsRefused) {
  ASSAY_NEEDS_GPU_RANKS();
  const at::Tensor whole = at::zeros({ranks() * 1000}, floats());
  const auto handle = world().scatter_by_copies(whole, staging_of(999, floats()));
  EXPECT_THROW(world().begin_reduce_scatter_sum(whole, whole.narrow(0, world().rank() * 1000, 1000)),
               std::invalid_argument);
  world().barrier();
}

TEST(PeerSumsImpl, UnlikeMemoriesAreRefusedByAllRanks) {
  ASSAY_NEEDS_GPU_RANKS();
  try {
    world().scatter_by_copies(at::zeros({world().rank() == 0 ? 100 : 200}, floats()),
                              staging_of(100, floats()));
    FAIL() << "not refused";
  } catch (const AgreedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("bytes to share"), std::string::npos) << text;
    EXPECT_NE(text.find("give parallel.scatter=nccl"), std::string::npos) << text;
  }
  world().barrier();
  tests::expect_collectives(world(), tests::gpu_ranks().device);
}

}  // namespace
}  // namespace assay::impl::peer_sums_test
