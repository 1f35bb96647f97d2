#include "impl/run/stop_signal.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

#include "impl/machine/launcher_word.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {
// The system runs the handler on any thread of the process, the trainer's asks: atomics, and such without a
// lock, since a handler may not wait for the thread that it interrupts.
std::atomic<int> received_signal = 0;
std::atomic<std::int64_t> received_at = 0;  ///< [ms]
std::atomic<bool> watched = false;
std::atomic<int> insisted_code = 128 + SIGINT;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free &&
                  std::atomic<bool>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

std::int64_t milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// The user insists. Checkpoints that are committed are on the disk.
[[noreturn]] void end_at_once() { _exit(insisted_code); }

void on_signal(int signal, siginfo_t* info, void*) {
  constexpr std::int64_t one_request = 100;
  const auto word = word_in(*info);
  if (word == LauncherWord::at_once) end_at_once();
  if (word == LauncherWord::peer_lost) {
    if (!watched) _exit(static_cast<int>(ExitCode::peer_lost));
    return;
  }
  int none = 0;
  if (received_signal.compare_exchange_strong(none, signal)) {
    received_at = milliseconds();
    return;
  }
  // A terminal that goes away, or a pipe that nobody reads, says so more than once.
  if (word || signal == SIGHUP || signal == SIGPIPE || milliseconds() - received_at < one_request) return;
  end_at_once();
}

/// What asks for a stop: also a pipe that nobody reads.
template <class Each>
void for_each_signal(Each each) {
  for (const int signal : stop_signals) each(signal);
  each(SIGPIPE);
}
}  // namespace

StopSignal::StopSignal() {
  received_signal = 0, insisted_code = 128 + SIGINT;
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigset_t held;
  sigemptyset(&held);
  for_each_signal([&](int signal) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    sigaddset(&held, signal);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) return;  // nohup
    sigaction(signal, &action, nullptr);
  });
  sigprocmask(SIG_UNBLOCK, &held, nullptr);
}

StopSignal::~StopSignal() {
  for_each_signal([](int signal) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal) std::signal(signal, SIG_DFL);
  });
}

int StopSignal::received() const { return received_signal; }

void StopSignal::run_is_over(int code) const { insisted_code = code; }

void leave_lost_ranks_to_the_watch() { watched = true; }

}  // namespace assay::impl::run
