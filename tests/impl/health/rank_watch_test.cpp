// labels: unit fault
// Ranks as threads that watch each other, on one machine and on two.
#include "impl/health/rank_watch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "impl/health/watched_communicator.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::rank_watch_test {
namespace {

constexpr WatchLimits quick{.silence = 1.5, .stall = 1, .steps = 5, .outside = 600};

struct Reported {
  std::mutex mutex;
  std::vector<std::string> texts, warned, written;  ///< warned: aloud; written: on rank 0
  std::atomic<int> recorded{0}, ended{0};
  std::atomic<bool> over{false};  ///< nobody is lost: all may go
};

constexpr int all_go_on = -1, all_hang = -2;

void end_child(int child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// `faulty` of `hosts.size()` ranks does `what`, the others wait until the watch ends them or 6 s are over.
/// Ranks with the same entry of `hosts` are of one machine. `stand_in`: the faulty rank's process, instead of
/// this one; it is killed behind `what`, and as with a process that dies, its watch and its store are gone by
/// then.
void play(const std::vector<std::string>& hosts, int faulty, Reported& reported,
          const std::function<void(RankWatch&)>& what, std::optional<int> stand_in = {}) {
  static std::atomic<int> plays = 0;
  const std::string play = std::to_string(plays++);
  const auto note = [&](std::vector<std::string>& to, const std::string& text) {
    const std::scoped_lock lock(reported.mutex);
    to.push_back(text);
  };
  tests::on_thread_ranks(static_cast<int>(hosts.size()), [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const std::string& host = hosts[static_cast<std::size_t>(rank)];
    std::atomic<bool> ended = false;
    const auto end = [&] {
      ended = true;
      ++reported.ended;
    };
    Process process = rank == faulty && stand_in ? process_of(*stand_in) : this_process();
    process.space = host + play;
    std::optional<RankWatch> own(
        std::in_place, communicator, quick,
        WatchCalls{.print = [&](const std::string& text) { note(reported.texts, text); }, .end = end}, host,
        process);
    RankWatch& watch = *own;
    const auto slow = [&](const std::string& text, bool aloud) {
      if (aloud) note(reported.warned, std::to_string(rank) + ": " + text);
      if (rank != 0) return;
      const DiskCall writes;  // of the record
      note(reported.written, text);
    };
    watch.record_by({.advice = {}, .loss = [&](const std::string&) { ++reported.recorded; }, .slow = slow});
    watch.row().begin_step(3);
    for (int i = 0; i < 12; ++i) watch.row().give();
    watch.row().follow([] { return 12; });
    watch.row().end_step(0.1), watch.row().end_step(0.1);
    watch.row().enter(Doing::backward);
    if (rank == faulty) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until all have seen where it is
      what(watch);
      own.reset();
      if (rank == 0) dynamic_cast<tests::ThreadCommunicator&>(communicator).end_store();
      if (stand_in) end_child(*stand_in);
      return;
    }
    const WaitingRow waiting(watch.row());
    for (int turn = 0; turn < (faulty == all_go_on ? 150 : 600) && !ended && !reported.over; ++turn) {
      if (faulty == all_go_on) watch.row().tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!ended) watch.leave();
  });
}

/// `speakers`: hosts that report it, each once.
void expect_named(const Reported& reported, int rank, int others, const std::string& what,
                  std::size_t speakers = 1) {
  ASSERT_EQ(reported.texts.size(), speakers);
  EXPECT_EQ(reported.recorded, static_cast<int>(speakers));
  EXPECT_NE(reported.texts[0].find("rank " + std::to_string(rank) + " ("), std::string::npos)
      << reported.texts[0];
  EXPECT_NE(reported.texts[0].find(what), std::string::npos) << reported.texts[0];
  EXPECT_NE(reported.texts[0].find("step 3, phase backward"), std::string::npos) << reported.texts[0];
  EXPECT_GE(reported.ended, others);
}

const std::vector<std::string> one_host = {"a", "a", "a"}, two_hosts = {"a", "a", "b", "b"};

int start_child() {
  const int child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  return child;
}

/// The process of the faulty rank is another one, which is killed.
void play_a_death(const std::vector<std::string>& hosts, int rank, Reported& reported) {
  play(
      hosts, rank, reported, [](RankWatch&) {}, start_child());
}

TEST(RankWatchImpl, ARankThatGoesWithoutAWordIsNamedOnceByTheOthers) {
  for (int rank = 0; rank < 3; ++rank) {
    Reported reported;
    play_a_death(one_host, rank, reported);
    expect_named(reported, rank, 2, "died: its process is gone");
  }
}

TEST(RankWatchImpl, AcrossHostsToo) {
  for (int rank = 0; rank < 4; ++rank) {
    Reported reported;
    play_a_death(two_hosts, rank, reported);
    // Without rank 0 the hosts have nobody between them.
    expect_named(reported, rank, 3, "died", rank == 0 ? 2 : 1);
  }
}

/// Rank 2 learns of rank 0's end when rank 1 has long reported it: without a store it knows by rank 1's
/// process.
TEST(RankWatchImpl, ALateRankDoesNotReportAgain) {
  std::atomic<int> reports = 0;
  tests::on_thread_ranks(3, [&](Communicator& communicator) {
    const int rank = communicator.rank(), child = start_child();
    Process process = process_of(child);
    process.space = "late";
    std::atomic<bool> ended = false, late = false;
    auto watch = std::make_unique<RankWatch>(communicator, quick,
                                             WatchCalls{.print = [&](const std::string&) { ++reports; },
                                                        .end =
                                                            [&] {
                                                              end_child(child);
                                                              ended = true;
                                                            }},
                                             "a", process);
    watch->row().follow([&] {
      if (late) std::this_thread::sleep_for(std::chrono::milliseconds(900));
      return 0;
    });
    late = rank == 2;
    communicator.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (rank == 0) {
      end_child(child);
      return watch.reset();
    }
    for (int turn = 0; turn < 800 && !ended; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(ended);
  });
  EXPECT_EQ(reports, 1);
}

/// No process of its machine sees it end: its heartbeats stay away.
TEST(RankWatchImpl, ALoneRankOfAHostThatGoesIsNamedByItsSilence) {
  for (const int rank : {0, 1}) {
    Reported reported;
    play({"a", "b"}, rank, reported, [](RankWatch& watch) {
      watch.row().end_step(1);  // its stall is then longer than a silence
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    });
    expect_named(reported, rank, 1, rank == 0 ? "has died" : "no sign of life for 2 s");
  }
}

TEST(RankWatchImpl, ARankThatFailsIsNamedWithItsReason) {
  for (const auto& hosts : {one_host, two_hosts}) {
    Reported reported;
    play(hosts, 2, reported, [](RankWatch& watch) { watch.fail("no such file"); });
    expect_named(reported, 2, static_cast<int>(hosts.size()) - 1, "failed: no such file");
  }
}

TEST(RankWatchImpl, ARankThatDoesNotGoOnIsNamed) {
  for (const auto& hosts : {one_host, two_hosts}) {
    Reported reported;
    play(hosts, 1, reported, [](RankWatch&) { std::this_thread::sleep_for(std::chrono::seconds(4)); });
    expect_named(reported, 1, static_cast<int>(hosts.size()) - 1, "has not gone on for 1 s");
  }
}

TEST(RankWatchImpl, ARankWhoseGpuDoesNotGoOnIsNamed) {
  for (const auto& hosts : {one_host, two_hosts}) {
    Reported reported;
    play(hosts, 1, reported, [](RankWatch& watch) {
      watch.row().follow([] { return 9; });
      const WaitingRow waiting(watch.row());
      std::this_thread::sleep_for(std::chrono::seconds(4));
    });
    expect_named(reported, 1, static_cast<int>(hosts.size()) - 1, "it has come to 9 of the 12 collectives");
  }
}

/// Nobody is lost: rank 0 records and prints a warning; where rank 0 is the slow one, rank 1 prints it.
TEST(RankWatchImpl, ARankThatWaitsForDataIsReportedByAnotherAndGoesOn) {
  const std::uint64_t before = DiskCall::ended();
  for (const auto& hosts : {one_host, two_hosts})
    for (const int slow : {0, 1}) {
      Reported reported;
      play(hosts, slow, reported, [&](RankWatch& watch) {
        watch.row().enter(Doing::data_wait);
        {
          const DataCall data;
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        }
        watch.row().tick();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        reported.over = true;
        watch.row().enter(Doing::ending), watch.leave();
      });
      ASSERT_EQ(reported.warned.size(), 1u);
      const std::string name = "rank " + std::to_string(slow);
      EXPECT_TRUE(
          reported.warned[0].starts_with((slow == 0 ? "1: " : "0: ") + name + " (host a, CPU) has waited"))
          << reported.warned[0];
      EXPECT_NE(reported.warned[0].find("for data for 1 s; step 3, phase data_wait"), std::string::npos)
          << reported.warned[0];
      ASSERT_EQ(reported.written.size(), 1u);
      EXPECT_TRUE(reported.written[0].starts_with(name)) << reported.written[0];
      EXPECT_TRUE(reported.texts.empty()) << reported.texts[0];
      EXPECT_EQ(reported.ended, 0);
    }
  EXPECT_EQ(DiskCall::ended(), before)
      << "a warning that is recorded would count as progress of the slow rank";
}

TEST(RankWatchImpl, WhereAllHangTogetherAllEndAndNobodyIsNamed) {
  for (const auto& hosts : {one_host, two_hosts}) {
    Reported reported;
    play(hosts, all_hang, reported, {});
    ASSERT_EQ(reported.texts.size(), 1u);
    EXPECT_EQ(reported.recorded, 1);
    EXPECT_EQ(reported.ended, static_cast<int>(hosts.size()));
    EXPECT_TRUE(
        reported.texts[0].starts_with("assay: error: all " + std::to_string(hosts.size()) + " ranks wait"))
        << reported.texts[0];
    EXPECT_EQ(reported.texts[0].find("(host"), std::string::npos) << reported.texts[0];
  }
}

TEST(RankWatchImpl, WhoLeavesIsNotMissedAndNothingIsLeftBehind) {
  Reported reported;
  play(one_host, all_go_on, reported, {});
  play(two_hosts, all_go_on, reported, {});
  EXPECT_TRUE(reported.texts.empty()) << reported.texts[0];
  EXPECT_EQ(reported.ended, 0);
}

TEST(WatchedCommunicatorImpl, NotesWhatTheRankIsAt) {
  tests::on_thread_ranks(2, [](Communicator& communicator) {
    Row row;
    auto watched = make_watched_communicator(
        std::make_unique<tests::ThreadCommunicator>(std::make_shared<tests::Meeting>(1), 0), row);
    const at::Tensor tensor = at::ones({5}, at::kDouble);
    watched->all_reduce_sum(tensor);
    const RowView view = row.view();
    EXPECT_EQ(view.collectives, 1);
    EXPECT_EQ(view.collective, spec::Collective::all_reduce);
    EXPECT_EQ(view.bytes, 40);
    EXPECT_FALSE(view.waits);
    watched->group({0})->barrier();
    EXPECT_EQ(row.view().collectives, 2);
    communicator.barrier();
  });
}

}  // namespace
}  // namespace assay::impl::rank_watch_test
