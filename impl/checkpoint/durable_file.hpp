#pragma once
// Files that are on the disk when a call returns.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "impl/machine/output_folder.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/text/file.hpp"

namespace assay::impl::checkpoint {

using spec::content_hash;
using spec::ContentHash;

/// A new file, written from front to back. Errors: FileError naming path, operation and the system's
/// reason.
class DurableFile {
 public:
  /// Errors also when the file exists.
  DurableFile(const OutputFolder& folder, const std::string& name);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  /// fsync and close; nothing may be written after it.
  void commit();
  std::int64_t size() const { return size_; }
  std::string hash() const { return hash_.hex(); }  ///< of everything written

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  ContentHash hash_;
};

/// Bytes that may still be written to the disk of `folder`, or of the nearest folder above it that exists;
/// nothing where the system does not say.
std::optional<std::int64_t> free_bytes(const std::filesystem::path& folder);

/// Makes the entries of a folder durable. Errors: FileError.
void sync_folder(const std::filesystem::path& folder);

/// Creates `folder` and what is missing above it, each a durable entry of the folder that holds it: without
/// that, files flushed within are lost with the name that leads to them. Errors: FileError.
void create_durable_folder(const std::filesystem::path& folder);

/// spec::read_file, which is called again where the disk fails for a moment, and while which this rank waits
/// for it.
std::string read_whole(const std::filesystem::path& path, const spec::FileLimit& limit);

}  // namespace assay::impl::checkpoint
