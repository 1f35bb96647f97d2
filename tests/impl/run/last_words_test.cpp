// labels: unit fault
#include "impl/run/last_words.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace assay::impl::run::last_words_test {
namespace {

using namespace std::chrono_literals;

/// Whether words were spoken within two seconds of `signal`.
bool spoken_after(int signal, bool ends_by_itself) {
  std::atomic<int> spoken = 0;
  const StopSignal stop;
  {
    LastWords words(
        stop, [&] { ++spoken; }, 50ms);
    if (signal) std::raise(signal);
    if (ends_by_itself) words.not_needed();
    for (int wait = 0; wait < (ends_by_itself || signal != SIGTERM ? 40 : 2000) && spoken == 0; ++wait)
      std::this_thread::sleep_for(10ms);
  }
  EXPECT_LE(spoken, 1);
  return spoken > 0;
}

TEST(LastWordsImpl, AreSpokenWhereTheRunDoesNotEndAfterTheLaunchersSignal) {
  EXPECT_TRUE(spoken_after(SIGTERM, false));
}

TEST(LastWordsImpl, AreNotSpokenWhereItEndsByItselfOrIsAskedOtherwise) {
  EXPECT_FALSE(spoken_after(SIGTERM, true));
  EXPECT_FALSE(spoken_after(SIGUSR1, false));
  EXPECT_FALSE(spoken_after(0, false));
}

}  // namespace
}  // namespace assay::impl::run::last_words_test
