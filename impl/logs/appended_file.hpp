#pragma once
// A file that grows while a run goes, and that a full disk does not cut.
#include <cstddef>
#include <string>
#include <string_view>

namespace assay::impl::logs {

/// Each append is one write(2), so that what was written survives the process. What a disk does not take is
/// kept and written ahead of the next append: the file is always a beginning of what was given.
class AppendedFile {
 public:
  /// Takes over an open descriptor.
  explicit AppendedFile(int descriptor) : descriptor_(descriptor) {}
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// The system's reason why not all of it was taken, 0 when it was. A full disk is none until over 64 MiB
  /// wait for it.
  int append(std::string_view bytes);
  /// Waits until all of it is on the disk; the reason why it is not, 0 when it is.
  int sync();
  /// Bytes that the disk did not take yet.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  int write_waiting();

  const int descriptor_;
  std::string waiting_;
};

}  // namespace assay::impl::logs
