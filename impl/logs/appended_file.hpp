#pragma once
// A file that grows while a run goes, and that no error of the disk cuts or ends the run for.
#include <cstddef>
#include <string>
#include <string_view>

namespace assay::impl::logs {

/// Each append is one write(2), so that what was written survives the process. What a disk does not take, or
/// took and could not keep, is held here and written ahead of the next append: the file is always a beginning
/// of what was given.
class AppendedFile {
 public:
  /// Takes over an open descriptor.
  explicit AppendedFile(int descriptor) : descriptor_(descriptor) {}
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  int descriptor() const { return descriptor_; }

  /// Goes on in another file, which is open for writing and empty: it gets all that this one holds, on the
  /// disk, whatever became of this one's name. Takes over the descriptor unless the other file does not take
  /// it: then the reason (errno) is returned, and nothing has changed. `whole`: false where this file cannot
  /// be read any more, and the other one begins empty.
  struct Moved {
    int reason = 0;
    bool whole = true;
  };
  Moved move_to(int descriptor);
  /// 0, or the system's reason why not all of it was written. While no more than 64 MiB wait to be written
  /// again, a failed write counts as none, and the result is 0.
  int append(std::string_view bytes);
  /// Waits until all of it is on the disk, which is asked so many times; the reason why it is not, 0 when it
  /// is.
  int sync(int times = 4);
  /// Bytes that the disk did not take yet, and its last reason.
  std::size_t waiting() const { return waiting_.size(); }
  int reason() const { return reason_; }

 private:
  int write_waiting();
  int flush();
  bool take_back();

  int descriptor_;
  std::string waiting_, unflushed_;  ///< unflushed_: written, and not known to be on the disk
  int reason_ = 0;
};

}  // namespace assay::impl::logs
