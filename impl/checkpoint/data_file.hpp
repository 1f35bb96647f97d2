#pragma once
// A token file by its content, so that a resumed run finds out whether it still reads the same data.
#include <cstdint>
#include <string>

namespace assay::impl::checkpoint {

/// Two files of the same size and sample are taken for the same, whatever their paths.
struct DataFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string sample;  ///< content_hash of pieces of it

  bool same_content(const DataFile& other) const { return bytes == other.bytes && sample == other.sample; }
};

/// Reads 16 pieces of 16 KiB, spread evenly from the first byte to the last, or the whole file where it is
/// shorter than these. Errors: InputFile::Unreadable.
DataFile data_file(const std::string& path);

}  // namespace assay::impl::checkpoint
