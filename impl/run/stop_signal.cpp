#include "impl/run/stop_signal.hpp"

#include <atomic>
#include <csignal>

namespace assay::impl::run {

namespace {
// SIGUSR1 is what launchers pass on to their ranks: mpirun kills them a second after a SIGTERM of its own,
// and batch systems can send it ahead of a time limit.
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE};

// The system runs the handler on any thread of the process, the trainer's asks: an atomic, and one without a
// lock, since a handler may not wait for the thread that it interrupts.
std::atomic<int> received_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_signal(int signal) {
  int none = 0;
  if (received_signal.compare_exchange_strong(none, signal)) return;
  // A terminal that goes away, or a pipe that nobody reads, says so more than once.
  if (signal == SIGHUP || signal == SIGPIPE) return;
  // The user insists: die of the signal, so that the shell and the launcher see why.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int signal : kStopSignals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup
    sigaction(signal, &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (int signal : kStopSignals) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == on_signal) std::signal(signal, SIG_DFL);
  }
}

int StopSignal::received() const { return received_signal; }

}  // namespace assay::impl::run
