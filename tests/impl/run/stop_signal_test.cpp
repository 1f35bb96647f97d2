// labels: unit fault
// A signal that any thread of the process is given asks the run to stop; a second one ends it.
#include "impl/run/stop_signal.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <thread>

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

TEST(StopSignalImpl, OfTwoThreadsThatAreSignalledAtOnceOneEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignal stop;
        std::jthread first([] { pthread_kill(pthread_self(), SIGTERM); });
        std::jthread second([] { pthread_kill(pthread_self(), SIGTERM); });
        first.join();
        second.join();
      },
      testing::KilledBySignal(SIGTERM), "");
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
