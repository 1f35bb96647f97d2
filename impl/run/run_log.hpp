#pragma once
// The events of a run, from the first to the last: rank 0 writes them to the record and prints them, and
// every rank keeps the sums that the last event holds.
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "impl/logs/console.hpp"
#include "impl/logs/record_writer.hpp"
#include "impl/logs/tensorboard/event_writer.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/run/run_clock.hpp"
#include "impl/run/warnings.hpp"
#include "spec/error.hpp"
#include "spec/record/event.hpp"
#include "spec/record/goodput.hpp"

namespace assay::impl::run {

/// Several threads may call `say`, `warn`, `end` and `record_lost_rank` at the same time.
class RunLog {
 public:
  /// What every later event rests on. `directory`: the folder that is really written to.
  void begin(spec::record::RunStart start, const std::string& directory);
  /// On rank 0, which writes; the other ranks only keep the sums. A record that is there already is read, and
  /// the new events are appended to it. `tensorboard`: curves are written to the folder, too. Errors:
  /// UserError of RecordWriter and EventWriter.
  void open(std::int64_t log_every, bool tensorboard = false);
  bool opened() const { return writer_.has_value(); }

  /// Whether the folder, and the record in it, are those that were opened: on rank 0.
  bool folder_in_place() const { return folder_->still_there(); }
  bool in_place() const { return folder_in_place() && writer_->in_place(); }
  /// The folder is this one from here on. Where this rank writes, record and curves go on in it with what was
  /// written so far; false: that cannot be read any more, and the record begins anew. Errors: UserError of
  /// RecordWriter, and nothing has changed.
  bool move_to(const std::string& directory);

  const spec::record::RunStart& start() const { return start_; }
  /// What of the record that was there already is damaged.
  const std::vector<std::string>& damage() const { return damage_; }
  /// Has all that was said put on the disk; returns where the record stands then, the hash of its last line.
  /// Empty on other ranks, and where the disk does not take it.
  std::string place_on_disk();

  /// Records and, unless not `aloud`, prints, where this rank writes. Errors: UserError(io).
  void say(const spec::record::Event& event, bool aloud = true);
  /// Whether there was something to warn of.
  bool warn(const std::optional<spec::record::Warning>& warning);
  /// From here on wall-clock time belongs to this part of the run.
  void enter(RunPart part);
  /// Adds a step to the sums, then says it.
  void step(spec::record::Step step);

  /// The last event, which says what the steps came to; returns the exit code. Errors: UserError(io).
  int end(spec::record::EndReason reason, ExitCode code, const std::optional<std::string>& message);
  /// The last event says why the run ended, whatever the error. One that keeps it from being written hides
  /// nothing: the first is thrown on.
  void record_failure(const std::exception& error) noexcept;
  /// The watch's last word, `text`, on the rank that was chosen to say it: this rank may write the record or
  /// not.
  void record_lost_rank(const std::string& text);

 private:
  void read_what_is_there(const std::string& record);
  void count(const spec::record::Event& event);
  spec::record::RunEnd end_now(spec::record::EndReason reason, ExitCode code,
                               const std::optional<std::string>& message) const;

  spec::record::RunStart start_;
  std::string directory_;
  std::recursive_timed_mutex recording_;  ///< of the record and the counts
  std::optional<OutputFolder> folder_;    ///< on rank 0
  std::optional<logs::RecordWriter> writer_;
  std::optional<logs::tensorboard::EventWriter> curves_;
  std::optional<logs::Console> console_;
  std::vector<spec::record::Step> last_steps_;  ///< those of the final loss
  std::int64_t steps_ = 0, tokens_ = 0;
  double seconds_ = 0, data_wait_ = 0;
  NormHistory norms_;
  RunClock clock_;
  std::optional<spec::record::GoodputOfStarts> goodput_;  ///< nothing: earlier starts cannot be read
  std::vector<std::string> damage_;
  bool record_waits_ = false, loss_recorded_ = false;
};

}  // namespace assay::impl::run
