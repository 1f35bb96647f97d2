#pragma once
// What this process does when a rank is lost: one of the running ranks reports it, then all of them end.
#include <functional>
#include <mutex>
#include <string>

#include "impl/comm/communicator.hpp"
#include "impl/health/rank_watch.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The watch of a run's ranks (impl/health/rank_watch.hpp). Once a rank is lost, this process ends with
/// ExitCode::peer_lost, wherever its other threads are.
class Watching {
 public:
  /// Collective. Errors: those of RankWatch.
  Watching(Communicator& communicator, const WatchLimits& limits);

  Row& row() { return watch_.row(); }
  RankWatch& watch() { return watch_; }
  /// Who is lost is also written to the record that way, and `advice` says behind it what to do next; {}:
  /// neither any more. A rank that does not write the record otherwise may be the one that is asked.
  void record_by(std::function<void(const std::string& text)> record, std::function<std::string()> advice);
  /// For the rank that writes the record: `warn` records that a rank is slow and, `aloud`, prints it; {}: no
  /// more. Errors that it throws are passed over: the next event meets them, too.
  void warn_by(std::function<void(const std::string& text, bool aloud)> warn);

 private:
  void report(const std::string& text);
  void record(const std::string& text);
  void warn(const std::string& text, bool aloud);
  std::string with_advice(const std::string& text);
  [[noreturn]] void end();

  std::mutex mutex_, warning_;  ///< warning_ is held while a warning is written
  std::function<void(const std::string&)> record_;
  std::function<std::string()> advice_;
  std::function<void(const std::string&, bool)> warn_;
  RankWatch watch_;  ///< its thread uses the above
};

/// Appends the end of a run to a record that another rank wrote, unless it has its end. Tries again for two
/// seconds while the lock of its writer, which was ended, is held. Errors: those of RecordWriter.
void append_end(const std::string& record, const spec::record::RunEnd& end);

}  // namespace assay::impl::run
