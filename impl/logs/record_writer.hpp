#pragma once
// run.jsonl on disk (spec/record/record.md).
#include <cstddef>
#include <filesystem>
#include <optional>

#include "impl/logs/appended_file.hpp"
#include "spec/record/chain.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::logs {

/// Appends events to a record, one line and one write(2) each, so that what was written survives the process.
/// While it lives it holds a lock on the file: two runs that write to one folder would mix their records and
/// remove each other's unfinished checkpoints.
class RecordWriter {
 public:
  /// Continues an existing record, or starts one; a last line that a crash cut off is removed first. Creates
  /// missing parent folders. Errors: UserError(io), as `write`; UserError(usage) while another run writes it.
  explicit RecordWriter(std::filesystem::path file);

  /// What the disk does not take is kept here, up to 64 MiB, and written before the next event, so that a run
  /// does not die of its record. Errors: UserError(io) with the path and the system's reason.
  void write(const spec::record::Event& event);

  /// Bytes of events that the disk did not take yet, and why (errno).
  std::size_t waiting() const { return lines_->waiting(); }
  int reason() const { return lines_->reason(); }

  /// Of the last event written, the hash at the end of its line (spec/record/record.md, "Chain").
  std::string place() const { return chain_.hash(); }

  /// Waits until everything written is on the disk, which is asked so many times. Errors: UserError(io), also
  /// when it is still full.
  void sync(int times = 4);

  const std::filesystem::path& path() const { return file_; }

  /// Whether its path leads to it still.
  bool in_place() const;
  /// Goes on as another file, which begins with all that was written so far; one of that name that holds
  /// something becomes NAME.other. False: what was written cannot be read any more, and the record begins
  /// anew. Errors, after which nothing has changed: UserError(io, usage), as the constructor's.
  bool move_to(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  std::optional<AppendedFile> lines_;
  spec::record::Chain chain_;
};

}  // namespace assay::impl::logs
