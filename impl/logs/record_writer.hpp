#pragma once
// run.jsonl on disk (spec/record/record.md).
#include <filesystem>

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
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Errors: UserError(io) with the path and the system's reason, e.g. a full disk.
  void write(const spec::record::Event& event);

  /// Waits until everything written is on the disk. Errors: UserError(io).
  void sync();

  const std::filesystem::path& path() const { return file_; }

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace assay::impl::logs
