#include "impl/run/stop_signal.hpp"

#include <csignal>

namespace assay::impl::run {

namespace {
// SIGUSR1 is what launchers pass on to their ranks: mpirun kills them a second after a SIGTERM of its own,
// and batch systems can send it ahead of a time limit.
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1};

volatile std::sig_atomic_t received_signal = 0;

void on_signal(int signal) {
  if (received_signal != 0) {
    // The user insists: die of the signal, so that the shell and the launcher see why.
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  received_signal = signal;
}
}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int signal : kStopSignals) sigaction(signal, &action, nullptr);
}

StopSignal::~StopSignal() {
  for (int signal : kStopSignals) std::signal(signal, SIG_DFL);
}

int StopSignal::received() const { return received_signal; }

}  // namespace assay::impl::run
