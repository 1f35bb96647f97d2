// labels: unit fault
// Ranks that meet at a store, as under torchrun, and one of them is not as it should be: it is named before
// any of them goes on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "impl/comm/gloo_communicator.hpp"
#include "spec/error.hpp"
#include "tests/impl/comm/free_port.hpp"

namespace assay::impl::meeting_test {
namespace {

/// What each of the ranks, given as (rank, size), reports; "" where it goes on. None ends before all have
/// their answer: the store is in rank 0, and would be gone with it.
std::vector<std::string> errors_of(const std::vector<std::pair<int, int>>& ranks) {
  const int port = tests::free_port();
  std::vector<std::string> texts(ranks.size());
  std::vector<std::thread> threads;
  std::latch all(static_cast<std::ptrdiff_t>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      std::unique_ptr<Communicator> communicator;
      try {
        communicator = make_gloo_communicator({.launcher = "torchrun",
                                               .rank = ranks[i].first,
                                               .size = ranks[i].second,
                                               .host = "127.0.0.1",
                                               .port = port,
                                               .keys = "assay/"},
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

TEST(MeetingImpl, AllRanksThatComeGoOn) {
  for (const std::string& text : errors_of({{0, 3}, {1, 3}, {2, 3}})) EXPECT_EQ(text, "");
}

TEST(MeetingImpl, AMissingRankIsNamedToAllWithinThePatience) {
  const auto begin = std::chrono::steady_clock::now();
  expect_all(errors_of({{0, 4}, {1, 4}, {3, 4}}), "1 have not come: 2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(MeetingImpl, ARankThatCountsOtherwiseIsNamed) {
  expect_all(errors_of({{0, 3}, {1, 3}, {2, 4}}), "rank 2 was started as one of 4 ranks, rank 0 as one of 3");
}

TEST(MeetingImpl, TwoLaunchersAtOnceAreNamed) {
  const auto texts = errors_of({{0, 2}, {1, 2}, {1, 2}});
  int named = 0;
  for (const std::string& text : texts) named += text.find("rank 1 has come twice") != std::string::npos;
  EXPECT_GE(named, 1) << "the one that came second fails in any case";
}

/// Processes that know only how many their host has, as `assay train --ranks N --of TOTAL` starts them: what
/// each reports, an error with its exit code, and the ranks they get, by host and place.
std::map<std::string, std::vector<std::string>> hosts_that_meet(
    const std::vector<std::pair<std::string, int>>& hosts, int total,
    std::chrono::seconds patience = std::chrono::seconds(2), const std::function<bool()>& stopped = {}) {
  const int port = tests::free_port();
  std::map<std::string, std::vector<std::string>> out;
  std::vector<std::thread> threads;
  std::mutex mutex;
  int all = 0;
  for (const auto& [key, ranks] : hosts) all += ranks, out[key].resize(static_cast<std::size_t>(ranks));
  std::latch over(all);
  for (const auto& [key, ranks] : hosts)
    for (int i = 0; i < ranks; ++i)
      threads.emplace_back([&, key = key, ranks = ranks, i] {
        std::string text;
        std::unique_ptr<Communicator> communicator;
        try {
          communicator = make_gloo_communicator({.launcher = "assay",
                                                 .rank = -1,
                                                 .size = total,
                                                 .host_key = key,
                                                 .local_rank = i,
                                                 .local_size = ranks,
                                                 .host = "127.0.0.1",
                                                 .port = port,
                                                 .keys = "assay/"},
                                                patience, std::chrono::minutes(1), stopped);
          text = std::to_string(communicator->rank());
          EXPECT_EQ(communicator->all_gather(text).at(static_cast<std::size_t>(communicator->rank())), text);
        } catch (const UserError& error) {
          text = std::to_string(static_cast<int>(error.code())) + " " + error.what();
        }
        {
          const std::scoped_lock lock(mutex);
          out[key][static_cast<std::size_t>(i)] = text;
        }
        over.arrive_and_wait();
      });
  for (std::thread& thread : threads) thread.join();
  return out;
}

TEST(MeetingImpl, HostsThatCountTheirOwnRanksAloneAreNumbered) {
  std::set<std::string> all;
  for (const auto& [host, ranks] : hosts_that_meet({{"a", 2}, {"b", 3}, {"c", 1}}, 6)) {
    for (std::size_t i = 1; i < ranks.size(); ++i)
      EXPECT_EQ(std::stoi(ranks[i]), std::stoi(ranks[i - 1]) + 1) << "ranks of a host are neighbours";
    all.insert(ranks.begin(), ranks.end());
  }
  EXPECT_EQ(all, (std::set<std::string>{"0", "1", "2", "3", "4", "5"}));
}

/// More are a mistake; fewer may come the next time, as of any rank that is lost.
TEST(MeetingImpl, HostsThatBringAnotherNumberOfRanksAreNamed) {
  for (const auto& [total, code] : {std::pair(4, "2 "), std::pair(8, "77 ")})
    for (const auto& [host, ranks] : hosts_that_meet({{"a", 3}, {"b", 2}}, total))
      for (const std::string& text : ranks)
        EXPECT_EQ(text.rfind(code + std::string("2 hosts bring 5 ranks ("), 0), 0u) << text;
  for (const auto& [host, ranks] : hosts_that_meet({{"a", 1}}, 2))
    EXPECT_EQ(ranks.at(0).rfind("77 1 host brings 1 rank (", 0), 0u) << ranks.at(0);
}

/// Slurm kills half a minute after SIGTERM: nobody waits for hosts that long.
TEST(MeetingImpl, AStopEndsTheWaitForOtherHostsAndRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto stopped = [&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1); };
  for (const auto& [host, ranks] : hosts_that_meet({{"a", 2}}, 4, std::chrono::minutes(2), stopped))
    for (const std::string& text : ranks) {
      EXPECT_EQ(text.rfind("75 ", 0), 0u) << text;
      EXPECT_NE(text.find("was asked to stop while the job's processes met"), std::string::npos) << text;
    }
  for (const int rank : {0, 1}) {  // one that serves the store, and one that looks for it
    try {
      make_gloo_communicator({.launcher = "srun",
                              .rank = rank,
                              .size = 2,
                              .host = "127.0.0.1",
                              .port = tests::free_port(),
                              .keys = "assay/"},
                             std::chrono::minutes(2), std::chrono::minutes(1), stopped);
      ADD_FAILURE() << "it is alone";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::saved_requeue) << error.what();
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

TEST(MeetingImpl, AHostThatNobodyKnowsIsAnErrorBeforeAnythingListens) {
  for (const int rank : {0, 1}) {
    try {
      make_gloo_communicator({.launcher = "srun",
                              .rank = rank,
                              .size = 2,
                              .host = "nosuchhost.invalid",
                              .port = tests::free_port(),
                              .keys = "assay/"},
                             std::chrono::seconds(1));
      ADD_FAILURE() << "it met somebody";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()).rfind("\"nosuchhost.invalid\" is no host that is known here", 0),
                0u)
          << error.what();
    }
  }
}

TEST(MeetingImpl, APortThatIsTakenIsNamed) {
  const int port = tests::free_port(), taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  try {
    make_gloo_communicator(
        {.launcher = "torchrun", .size = 2, .host = "127.0.0.1", .port = port, .keys = "assay/"});
    ADD_FAILURE() << "two jobs would share a port";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("another program listens there"), std::string::npos)
        << error.what();
  }
  close(taken);
}

/// Where a connection would find no descriptor it would hang.
TEST(MeetingImpl, TooFewOpenFilesAreRefused) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit few{64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    try {
      make_gloo_communicator({.launcher = "torchrun",
                              .size = 2,
                              .host = "127.0.0.1",
                              .port = tests::free_port(),
                              .keys = "assay/"});
    } catch (const UserError& error) {
      std::_Exit(std::string(error.what()).find("may open 64 files here") != std::string::npos ? 0 : 1);
    }
    std::_Exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// Who connects and says nothing, or nonsense, delays nobody: before the ranks meet and after.
TEST(MeetingImpl, StrangersDelayNobody) {
  const int port = tests::free_port();
  std::atomic<bool> over = false;
  std::vector<int> connections;
  std::thread stranger([&] {
    while (!over) {
      const int each = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      connections.push_back(each);
      if (connect(each, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && connections.size() % 2)
        send(each, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      const auto communicator = make_gloo_communicator({.launcher = "torchrun",
                                                        .rank = rank,
                                                        .size = 3,
                                                        .host = "127.0.0.1",
                                                        .port = port,
                                                        .keys = "assay/"});
      for (int i = 0; i < 20; ++i) EXPECT_EQ(communicator->all_gather("x").size(), 3u);
      communicator->barrier();
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  over = true;
  stranger.join();
  for (const int each : connections) close(each);
}

}  // namespace
}  // namespace assay::impl::meeting_test
