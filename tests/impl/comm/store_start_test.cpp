// labels: unit fault
// Ranks that meet at a store, as under torchrun, and one of them is not as it should be: it is named before
// any of them goes on.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "impl/comm/store_communicator.hpp"
#include "spec/error.hpp"

namespace assay::impl::store_start_test {
namespace {

int free_port() {
  static std::atomic<int> next = 21000 + static_cast<int>(::getpid() % 20000);
  return next++;
}

/// What each of the ranks, given as (rank, size), reports; "" where it goes on. None ends before all have
/// their answer: the store is in rank 0, and would be gone with it.
std::vector<std::string> errors_of(const std::vector<std::pair<int, int>>& ranks) {
  const int port = free_port();
  std::vector<std::string> texts(ranks.size());
  std::vector<std::thread> threads;
  std::latch all(static_cast<std::ptrdiff_t>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      std::unique_ptr<Communicator> communicator;
      try {
        communicator = make_store_communicator(
            {Launch::By::store, "torchrun", ranks[i].first, ranks[i].second, "127.0.0.1", port},
            std::chrono::seconds(2));
        EXPECT_EQ(communicator->all_gather(std::to_string(ranks[i].first)).size(),
                  static_cast<std::size_t>(ranks[i].second));
      } catch (const UserError& error) {
        texts[i] = error.what();
      }
      all.arrive_and_wait();
    });
  for (std::thread& thread : threads) thread.join();
  return texts;
}

void expect_all(const std::vector<std::string>& texts, const std::string& what) {
  for (const std::string& text : texts) EXPECT_NE(text.find(what), std::string::npos) << text;
}

TEST(StoreStartImpl, AllRanksThatComeGoOn) {
  for (const std::string& text : errors_of({{0, 3}, {1, 3}, {2, 3}})) EXPECT_EQ(text, "");
}

TEST(StoreStartImpl, AMissingRankIsNamedToAllWithinThePatience) {
  const auto begin = std::chrono::steady_clock::now();
  expect_all(errors_of({{0, 4}, {1, 4}, {3, 4}}), "1 have not come: 2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(StoreStartImpl, ARankThatCountsOtherwiseIsNamed) {
  expect_all(errors_of({{0, 3}, {1, 3}, {2, 4}}), "rank 2 was started as one of 4 ranks, rank 0 as one of 3");
}

TEST(StoreStartImpl, TwoLaunchersAtOnceAreNamed) {
  const auto texts = errors_of({{0, 2}, {1, 2}, {1, 2}});
  int named = 0;
  for (const std::string& text : texts) named += text.find("rank 1 has come twice") != std::string::npos;
  EXPECT_GE(named, 1) << "the one that came second fails in any case";
}

}  // namespace
}  // namespace assay::impl::store_start_test
