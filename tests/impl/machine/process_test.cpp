// labels: unit
// Whether a process of this machine has ended, when it is watched from another.
#include "impl/machine/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace assay::impl::process_test {
namespace {

/// A child that waits for its end.
int start_child() {
  const int child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  return child;
}

bool comes_to_end(const Process& process) {
  for (int turn = 0; turn < 500 && is_alive(process); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !is_alive(process);
}

TEST(ProcessImpl, AStoppedProcessIsAliveAndOneThatNobodyHasWaitedForIsNot) {
  const int child = start_child();
  const Process process = process_of(child);
  EXPECT_EQ(process.space, this_process().space);
  EXPECT_GT(process.start, 0u);
  kill(child, SIGSTOP);
  EXPECT_TRUE(is_alive(process));
  EXPECT_TRUE(end_process(process)) << "stopped as it is";
  EXPECT_TRUE(comes_to_end(process)) << "a zombie";
  EXPECT_FALSE(end_process(process));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(is_alive(process));
}

TEST(ProcessImpl, AnIdThatIsUsedAgainIsAnotherProcess) {
  Process before = this_process();
  EXPECT_TRUE(is_alive(before));
  before.start -= 1;
  EXPECT_FALSE(is_alive(before));
  EXPECT_FALSE(end_process(before));
}

TEST(ProcessImpl, WhereProcSaysNothingNobodyHasEnded) {
  EXPECT_TRUE(is_alive({.space = this_process().space, .id = 1 << 30, .start = 0}));
}

TEST(ProcessImpl, ACallerDoesNotEndItself) { EXPECT_FALSE(end_process(this_process())); }

}  // namespace
}  // namespace assay::impl::process_test
