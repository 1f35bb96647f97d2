#pragma once
// What `assay train --ranks` says to the ranks that it started. It comes with SIGTERM, as a value that no
// scheduler, terminal or person sends along, so that a rank which also gets their signal counts one request.
#include <signal.h>
#include <unistd.h>

#include <optional>

namespace assay::impl {

enum class LauncherWord : int {
  stop = 1,       ///< somebody asked the launcher to stop
  at_once = 2,    ///< and then insisted
  peer_lost = 3,  ///< another rank has ended in the middle of the job
};

/// A process that does not know the word is ended by it.
inline void say_to(pid_t rank, LauncherWord word) {
  sigval value{};
  value.sival_int = static_cast<int>(word);
  sigqueue(rank, SIGTERM, value);
}

/// The word that came with a signal, if its sender is this process's launcher. Safe in a signal handler.
inline std::optional<LauncherWord> word_in(const siginfo_t& info) {
  if (info.si_signo != SIGTERM || info.si_code != SI_QUEUE || info.si_pid != getppid()) return {};
  const int word = info.si_value.sival_int;
  if (word < 1 || word > 3) return {};
  return static_cast<LauncherWord>(word);
}

/// The signals that ask a run to stop at the next step.
inline constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

/// They wait, over fork and exec, until the program that is started can do what they ask: libtorch takes
/// half a second to load, in which a signal would end the process. `run::StopSignal` lets them in.
inline void hold_stop_signals() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : stop_signals) sigaddset(&stops, signal);
  sigprocmask(SIG_BLOCK, &stops, nullptr);
}

}  // namespace assay::impl
