#pragma once

namespace assay::impl::run {

/// While it lives, SIGINT, SIGTERM, SIGUSR1, SIGHUP (unless nohup has it ignored) and SIGPIPE ask the run to
/// stop at the next step instead of ending the process, as does the launcher of `assay train --ranks`
/// (impl/machine/launcher_word.hpp). A second SIGINT, SIGTERM or SIGUSR1 ends the process at once with 130;
/// what comes within a tenth of a second is one request, and so is a signal to the process beside the
/// launcher's word for it. Signals that were held since before the program was loaded come in now. One at a
/// time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that asked for a stop, 0 if none did.
  int received() const;
  /// All is saved that will be, and the record has its end: who insists from here on gets `code`, at once.
  void run_is_over(int code) const;
};

/// From here on the ranks watch each other: the launcher's word that one is lost ends nothing.
void leave_lost_ranks_to_the_watch();

}  // namespace assay::impl::run
