// labels: unit fault
// Ranks that stay away or die are an error of the others; who listens where.
#include "impl/comm/gloo_communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "spec/error.hpp"
#include "tests/impl/comm/free_port.hpp"

namespace assay::impl::gloo_communicator_test {
namespace {

using namespace std::chrono_literals;

Launch launch_of(int rank, int size, int port, const std::string& host = "127.0.0.1") {
  return {.launcher = "torchrun", .rank = rank, .size = size, .host = host, .port = port, .keys = "assay/"};
}

/// Two ranks meet, rank 1 comes to the next collective after 3 s, and rank 0 waits for at most 1 s in the
/// run, unless `watched`. What rank 0 throws; "" for nothing.
std::string late_rank(bool watched) {
  const int port = tests::free_port();
  const auto rank = [&](int number) {
    auto communicator = make_gloo_communicator(launch_of(number, 2, port), 10s, 1s);
    if (watched) communicator->rely_on_watch();
    return communicator;
  };
  const at::Tensor numbers = at::ones({2});
  std::string thrown;
  std::thread other([&] {
    const auto communicator = rank(1);
    const auto group = communicator->group({0, 1});
    std::this_thread::sleep_for(3s);
    try {
      group->all_reduce_sum(at::ones({2}));
    } catch (const UserError&) {
      // Rank 0 has given up.
    }
  });
  {
    const auto communicator = rank(0);
    const auto group = communicator->group({0, 1});
    try {
      group->all_reduce_sum(numbers);
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
TEST(GlooCommunicatorImpl, ARankThatIsWatchedIsWaitedForBeyondThePatience) {
  EXPECT_EQ(late_rank(/*watched=*/true), "");
  EXPECT_NE(late_rank(/*watched=*/false).find("rank 0: a collective of 2 ranks failed"), std::string::npos);
}

/// The end of a rank's process is an error of those that wait for it, at once.
TEST(GlooCommunicatorImpl, ARankThatDiesIsAnErrorAtOnce) {
  const int port = tests::free_port();
  const pid_t child = fork();
  if (child == 0) {
    const auto communicator = make_gloo_communicator(launch_of(1, 2, port));
    communicator->all_reduce_sum(at::ones({2}));
    std::_Exit(9);
  }
  const auto communicator = make_gloo_communicator(launch_of(0, 2, port));
  communicator->all_reduce_sum(at::ones({2}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(communicator->all_reduce_sum(at::ones({2})), UserError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  waitpid(child, nullptr, 0);
}

/// Local addresses on which this process listens, of /proc/net/tcp and tcp6: hexadecimal, as there.
std::set<std::string> own_listeners() {
  std::set<std::string> inodes, found;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    char target[64] = {};
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    if (readlink(path.c_str(), target, sizeof target - 1) > 0)
      if (const std::string text = target; text.starts_with("socket:["))
        inodes.insert(text.substr(8, text.size() - 9));
  }
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string skip, local, state, inode;
      words >> skip >> local >> skip >> state;
      for (int i = 0; i < 6; ++i) words >> inode;
      if (state == "0A" && inodes.contains(inode)) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

/// Also where no launcher says that all are on one host.
TEST(GlooCommunicatorImpl, OnOneHostAllListenersAreOfTheLoopbackInterface) {
  for (const bool said : {true, false}) {
    const int port = tests::free_port();
    std::thread other([&] {
      const auto communicator = make_gloo_communicator(launch_of(1, 2, port, "localhost"));
      communicator->all_reduce_sum(at::ones({2}));
      communicator->barrier();
    });
    auto launch = launch_of(0, 2, port, "localhost");
    launch.one_host = said;
    const auto communicator = make_gloo_communicator(launch);
    communicator->all_reduce_sum(at::ones({2}));
    EXPECT_EQ(own_listeners(), std::set<std::string>{"0100007F"});
    communicator->barrier();
    other.join();
  }
}

}  // namespace
}  // namespace assay::impl::gloo_communicator_test
