// labels: unit property fault
// Texts of every rank through a store, of few ranks and of many, and what that costs the store.
#include "impl/comm/store_rounds.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace assay::impl::store_rounds_test {
namespace {

/// Counts the keys that are read.
class CountingStore final : public c10d::HashStore {
 public:
  std::vector<std::uint8_t> get(const std::string& key) override {
    ++read;
    return HashStore::get(key);
  }
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    read += static_cast<std::int64_t>(keys.size());
    return HashStore::multiGet(keys);
  }
  std::atomic<std::int64_t> read{0};
};

/// `work` on `ranks` threads, each a rank at one store.
c10::intrusive_ptr<CountingStore> on_ranks(int ranks, const std::function<void(int, StoreRounds&)>& work) {
  auto store = c10::make_intrusive<CountingStore>();
  store->setTimeout(std::chrono::seconds(60));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      StoreRounds rounds(store, "test/", r, ranks);
      work(r, rounds);
    });
  for (std::thread& thread : threads) thread.join();
  return store;
}

std::string join(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

RC_GTEST_PROP(StoreRoundsImpl, EveryRankHasEveryTextInOrder, ()) {
  const int ranks = *rc::gen::inRange(1, 41), rounds = *rc::gen::inRange(1, 5);
  const auto drawn = *rc::gen::container<std::vector<std::string>>(
      static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rounds), rc::gen::arbitrary<std::string>());
  const auto text = [&](int rank, int round) {
    return drawn[static_cast<std::size_t>(rank) + static_cast<std::size_t>(round)];
  };
  std::atomic<int> wrong = 0;
  const auto store = on_ranks(ranks, [&](int rank, StoreRounds& meeting) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::string> wanted;
      wanted.reserve(static_cast<std::size_t>(ranks));
      for (int r = 0; r < ranks; ++r) wanted.push_back(text(r, round));
      wrong += meeting.all(text(rank, round)) != wanted;
      wrong += meeting.joined(text(rank, round), join) != join(wanted);
    }
  });
  RC_ASSERT(wrong == 0);
  // What is left is the last round's.
  RC_ASSERT(static_cast<int>(store->listKeys().size()) <= ranks + 1);
}

/// A step has such a round: what rank 0's store reads must not grow with the square of the ranks.
TEST(StoreRoundsImpl, KeysThatAreReadGrowWithTheRanks) {
  for (const int ranks : {StoreRounds::few, 64, 150}) {
    const auto read =
        on_ranks(ranks, [](int, StoreRounds& meeting) { meeting.joined("x", join); })->read.load();
    EXPECT_LE(read, ranks <= StoreRounds::few ? ranks * ranks : 2 * ranks) << ranks;
  }
}

TEST(StoreRoundsImpl, AJoinedRoundIsNotTakenForTexts) {
  std::atomic<int> refused = 0;
  on_ranks(20, [&](int rank, StoreRounds& meeting) {
    // Rank 7 gives 16 bytes without their length: it joins nothing.
    if (rank == 7) {
      meeting.joined(std::string(16, '\x7f'), join);
      return;
    }
    try {
      meeting.all("text");
    } catch (const std::runtime_error& error) {
      refused += std::string(error.what()).find("ranks are out of step") != std::string::npos;
    }
  });
  EXPECT_EQ(refused, 19);
}

}  // namespace
}  // namespace assay::impl::store_rounds_test
