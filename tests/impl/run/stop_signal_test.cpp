// labels: unit fault
// A signal that any thread of the process is given asks the run to stop; a second one ends it.
#include "impl/run/stop_signal.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "impl/machine/launcher_word.hpp"

namespace assay::impl::run::stop_signal_test {
namespace {

TEST(StopSignalImpl, ASignalOnAnotherThreadIsSeenByTheOneThatAsks) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE}) {
    const StopSignal stop;
    EXPECT_EQ(stop.received(), 0);
    std::jthread([signal] { pthread_kill(pthread_self(), signal); }).join();
    EXPECT_EQ(stop.received(), signal);
  }
}

/// A terminal's signal to the group, and a scheduler's to the process, may be one request.
TEST(StopSignalImpl, SignalsAtOnceAreOneRequest) {
  const StopSignal stop;
  for (int time = 0; time < 5; ++time)  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): it is handled
    std::jthread([] { pthread_kill(pthread_self(), SIGTERM); }).join();
  std::raise(SIGINT);
  EXPECT_EQ(stop.received(), SIGTERM);
}

TEST(StopSignalImpl, ASecondRequestEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const int second : {SIGINT, SIGTERM, SIGUSR1})
    EXPECT_EXIT(
        {
          const StopSignal stop;
          std::raise(SIGTERM);
          std::this_thread::sleep_for(std::chrono::milliseconds(150));
          std::raise(second);
        },
        testing::ExitedWithCode(130), "");
}

/// Behind the end of a run that is saved, an exit code of 130 would say that it is not.
TEST(StopSignalImpl, ASecondRequestBehindTheEndOfTheRunHasTheRunsCode) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignal stop;
        std::raise(SIGTERM);
        stop.run_is_over(75);
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(75), "");
}

/// What was sent while the program was loaded.
TEST(StopSignalImpl, ASignalThatWasHeldComesIn) {
  hold_stop_signals();
  std::raise(SIGTERM);
  const StopSignal stop;
  EXPECT_EQ(stop.received(), SIGTERM);
}

/// The launcher's words: a process of its own here, whose child is the rank.
void say(LauncherWord word, int exits_with) {
  EXPECT_EXIT(
      {
        const pid_t rank = fork();
        if (rank == 0) {
          const StopSignal stop;
          while (stop.received() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          std::_Exit(75);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        if (word == LauncherWord::stop) kill(rank, SIGTERM);  // a rank that gets both
        say_to(rank, word);
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        if (word == LauncherWord::stop) say_to(rank, word);
        int status = 0;
        waitpid(rank, &status, 0);
        std::_Exit(WEXITSTATUS(status));
      },
      testing::ExitedWithCode(exits_with), "");
}

TEST(StopSignalImpl, TheLauncherStopsEndsAndNamesALossByItsWords) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  say(LauncherWord::stop, 75);
  say(LauncherWord::at_once, 130);
  say(LauncherWord::peer_lost, 77);
}

TEST(StopSignalImpl, ATerminalThatGoesAwayOrAClosedPipeMaySayItOften) {
  for (const int signal : {SIGHUP, SIGPIPE}) {
    const StopSignal stop;
    for (int time = 0; time < 3; ++time) std::raise(signal);
    EXPECT_EQ(stop.received(), signal);
  }
}

TEST(StopSignalImpl, WhatNohupIgnoresStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignal stop;
    std::raise(SIGHUP);
    EXPECT_EQ(stop.received(), 0);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN) << "it is not taken away from nohup";
}

TEST(StopSignalImpl, WithoutOneTheSignalHasItsUsualEffect) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        { const StopSignal stop; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace assay::impl::run::stop_signal_test
