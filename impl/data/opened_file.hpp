#pragma once
// A file of the data, opened for reading.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "spec/error.hpp"

namespace assay::impl::data {

/// It is read with pread and not mapped: a mapped file that is shortened by another program while it is read
/// kills the process with SIGBUS, and a read error of the disk does too. pread reports both, as errors with a
/// name. A sample is a few kilobytes in a row, read on the loader's thread, so the one copy more is not what
/// a step waits for.
class OpenedFile {
 public:
  /// Errors: UserError io (missing, unreadable), bad_data (no regular file, empty).
  explicit OpenedFile(std::filesystem::path path);
  ~OpenedFile();
  OpenedFile(OpenedFile&& other) noexcept;
  OpenedFile& operator=(OpenedFile&& other) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }      ///< when it was opened
  std::int64_t changed() const { return changed_; }  ///< its time of modification [ns]

  /// What fails for a moment is tried again (impl/machine/patient_call.hpp). Errors: UserError bad_data (the
  /// file became shorter), io (the system cannot read).
  void read(std::int64_t offset, std::span<unsigned char> into) const;
  /// The first bytes, as many as there are of `most`.
  std::string beginning(std::int64_t most) const;

  /// Throws UserError(code) that names the file: "token file "a.bin" WHAT".
  [[noreturn]] void refuse(ExitCode code, const std::string& what) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0, changed_ = 0;
};

/// The little-endian number of `width` bytes, 1 .. 8.
std::uint64_t little_endian(const unsigned char* bytes, std::int64_t width);

}  // namespace assay::impl::data
