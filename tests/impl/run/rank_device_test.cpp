// labels: unit property
// Which GPU a rank takes, by what every rank sees of its host; no GPU is needed to know.
#include "impl/run/start/rank_device.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::run::rank_device_test {
namespace {

using spec::Device;

std::string refusal(const std::vector<Seat>& seats, int rank, Device wanted) {
  try {
    seat_gpu(seats, rank, wanted);
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(RankDeviceImpl, RanksOfAHostTakeItsGpusInTurn) {
  const std::vector<Seat> seats = {
      {"a", {"0", "1"}}, {"a", {"0", "1"}}, {"b", {"2", "3"}}, {"b", {"2", "3"}}};
  for (const auto& [rank, gpu] : std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {2, 0}, {3, 1}})
    EXPECT_EQ(seat_gpu(seats, rank, Device::automatic), gpu) << rank;
}

TEST(RankDeviceImpl, ARankThatSeesOneGpuTakesIt) {
  EXPECT_EQ(seat_gpu({{"a", {"x"}}, {"a", {"y"}}}, 1, Device::cuda), 0);
}

TEST(RankDeviceImpl, WithoutGpusAutoIsTheCpu) {
  EXPECT_EQ(seat_gpu({{"a", {}}, {"a", {}}}, 1, Device::automatic), std::nullopt);
  EXPECT_EQ(seat_gpu({{"a", {"x"}}, {"a", {"x"}}}, 1, Device::cpu), std::nullopt);
  EXPECT_NE(refusal({{"a", {}}}, 0, Device::cuda).find("no usable NVIDIA GPU"), std::string::npos);
}

TEST(RankDeviceImpl, AGpuThatIsTakenTwiceIsNamed) {
  const std::string text = refusal({{"a", {"GPU-7"}}, {"a", {"GPU-7"}}}, 0, Device::automatic);
  EXPECT_NE(text.find("ranks 0 and 1 would share the GPU GPU-7"), std::string::npos) << text;
  EXPECT_NE(text.find("1 usable GPUs for 2 ranks"), std::string::npos) << text;
}

/// Containers of one machine have names of their own, and may be shown the same GPU.
TEST(RankDeviceImpl, AGpuThatIsSeenUnderTwoHostNamesIsOne) {
  const std::string text = refusal({{"box-1", {"GPU-7"}}, {"box-2", {"GPU-7"}}}, 0, Device::cuda);
  EXPECT_NE(text.find("ranks 0 and 1 would share the GPU GPU-7: hosts box-1 and box-2 both show it"),
            std::string::npos)
      << text;
}

/// Of tests: more ranks than GPUs, on each host its first.
TEST(RankDeviceImpl, RanksMayShareTheFirstGpuOfTheirHost) {
  const std::vector<Seat> seats = {{"a", {"0", "1"}}, {"a", {"0", "1"}}, {"b", {"2"}}, {"b", {"2"}}};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(seat_gpu(seats, rank, Device::automatic, Seating::first_gpu), 0) << rank;
  EXPECT_EQ(seat_gpu(seats, 1, Device::cpu, Seating::first_gpu), std::nullopt);
  EXPECT_THROW(seat_gpu({{"a", {"0"}}, {"b", {}}}, 0, Device::automatic, Seating::first_gpu), AgreedError);
}

TEST(RankDeviceImpl, AHostWithFewerGpusThanRanksIsNamed) {
  const std::vector<Seat> seats = {
      {"a", {"0", "1"}}, {"a", {"0", "1"}}, {"b", {"2", "3"}}, {"b", {"2", "3"}}, {"b", {"2", "3"}}};
  const std::string text = refusal(seats, 0, Device::cuda);
  EXPECT_NE(text.find("rank 4 has no GPU: host b has 2 usable GPUs for 3 ranks"), std::string::npos) << text;
  EXPECT_NE(refusal({{"a", {"0"}}, {"b", {}}}, 0, Device::automatic).find("rank 1 has no GPU"),
            std::string::npos);
}

RC_GTEST_PROP(RankDeviceImpl, NoTwoRanksShareAGpu, ()) {
  std::vector<Seat> seats;
  for (int rank = *rc::gen::inRange(1, 9); rank > 0; --rank) {
    Seat seat{*rc::gen::element<std::string>("a", "b"), {}};
    for (int gpu = *rc::gen::inRange(0, 5); gpu > 0; --gpu)
      seat.gpus.push_back(std::to_string(*rc::gen::inRange(0, 12)));
    seats.push_back(seat);
  }
  std::set<std::string> taken;
  if (refusal(seats, 0, Device::cuda) != "accepted") return;
  for (std::size_t r = 0; r < seats.size(); ++r) {
    const int gpu = seat_gpu(seats, static_cast<int>(r), Device::cuda).value();
    RC_ASSERT(taken.insert(seats[r].gpus.at(static_cast<std::size_t>(gpu))).second);
  }
}

TEST(RankDeviceImpl, RanksOnCpusAskForNoGpu) {
  tests::on_thread_ranks(3, [](Communicator& c) { EXPECT_TRUE(rank_device(Device::cpu, c).is_cpu()); });
}

}  // namespace
}  // namespace assay::impl::run::rank_device_test
