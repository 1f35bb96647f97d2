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
  std::int64_t bytes() const { return stamp_.bytes; }       ///< when it was opened
  std::int64_t changed() const { return stamp_.modified; }  ///< its time of modification [ns]

  /// By which a file is known to have been written to: its size, when its content was modified, and when
  /// anything of it was changed, which no program can set.
  struct Stamp {
    std::int64_t bytes = 0, modified = 0, changed = 0;  ///< [B], [ns], [ns]
    bool operator==(const Stamp&) const = default;
  };
  const Stamp& stamp() const { return stamp_; }  ///< when it was opened
  Stamp stamp_now() const;                       ///< Errors: UserError io

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
  Stamp stamp_;
};

/// The little-endian number of `width` bytes, 1 .. 8.
std::uint64_t little_endian(const unsigned char* bytes, std::int64_t width);

}  // namespace assay::impl::data
