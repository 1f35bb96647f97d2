#pragma once

namespace assay::impl::run {

/// While it lives, SIGINT, SIGTERM, SIGUSR1, SIGHUP (unless nohup has it ignored) and SIGPIPE ask the run to
/// stop at the next step border instead of ending the process; a second SIGINT, SIGTERM or SIGUSR1 ends it at
/// once with the signal's usual exit status. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that asked for a stop, 0 if none did.
  int received() const;
};

}  // namespace assay::impl::run
