// labels: unit fault
// Ranks that meet at a store and do not do the same get an error, and nothing is written past a tensor.
#include "impl/comm/store_communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace assay::impl::store_communicator_test {
namespace {

using namespace std::chrono_literals;

/// Two ranks meet, rank 1 comes to the next barrier after 3 s, and rank 0 waits for at most 1 s in the run,
/// unless `watched`. What rank 0 throws; "" for nothing.
std::string late_rank(bool watched) {
  static int plays = 0;
  const int port = 21000 + static_cast<int>(::getpid() % 20000) + plays++;
  const auto rank = [&](int number) {
    auto communicator =
        make_store_communicator({Launch::By::store, "torchrun", number, 2, "127.0.0.1", port}, 10s, 1s);
    if (watched) communicator->rely_on_watch();
    return communicator;
  };
  std::string thrown;
  std::thread other([&] {
    const auto communicator = rank(1);
    const auto group = communicator->group({0, 1});
    std::this_thread::sleep_for(3s);
    try {
      group->barrier();
    } catch (const UserError&) {
      // Rank 0 has given up.
    }
  });
  {
    const auto communicator = rank(0);
    const auto group = communicator->group({0, 1});
    try {
      group->barrier();
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::peer_lost);
      thrown = error.what();
    }
    other.join();
  }
  return thrown;
}

/// A rank that writes a checkpoint for longer than the patience: the others wait, as the watch lets them
/// live.
TEST(StoreCommunicatorImpl, ARankThatIsWatchedIsWaitedForBeyondThePatience) {
  EXPECT_EQ(late_rank(/*watched=*/true), "");
  EXPECT_NE(late_rank(/*watched=*/false).find("rank 0 waited for all 2 ranks"), std::string::npos);
}

TEST(StoreCommunicatorImpl, ATextWhereAnotherRankAddsNumbersIsRefused) {
  const int port = 41000 + static_cast<int>(::getpid() % 20000);
  const auto rank = [&](int number) {
    return make_store_communicator({Launch::By::store, "torchrun", number, 2, "127.0.0.1", port},
                                   std::chrono::seconds(10));
  };
  std::thread other([&] {
    const auto communicator = rank(1);
    communicator->all_gather(std::string(4096, 'x'));
    communicator->barrier();
  });
  const auto communicator = rank(0);
  const at::Tensor numbers = at::zeros({2}, at::kDouble);
  try {
    communicator->all_reduce_sum(numbers);
    ADD_FAILURE() << "a text was added to numbers";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 exchanges 16 bytes, rank 1 gives 4096"),
              std::string::npos)
        << error.what();
  }
  communicator->barrier();
  other.join();
}

}  // namespace
}  // namespace assay::impl::store_communicator_test
