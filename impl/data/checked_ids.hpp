#pragma once
// Every id of a token file, examined once before a run begins.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "impl/data/token_file.hpp"

namespace assay::impl::data {

/// Called now and then with the bytes that were read, of how many.
using Progress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Part `part` of `parts` of the files, all of about the same size and together all tokens once: the ids of
/// each file in it. Errors: those of TokenFile::range.
std::vector<IdRange> scan_ids(const std::vector<const TokenFile*>& files, std::int64_t part,
                              std::int64_t parts, const Progress& progress = {});

/// What is remembered of files that were scanned: files of this size, time of modification, sampled hash and
/// type, whatever their path. One small file for each, in XDG_CACHE_HOME or ~/.cache, assay/tokens.
class ScannedFiles {
 public:
  ScannedFiles();  ///< where neither is set, nothing is remembered
  /// In another folder. Files of fewer bytes are not remembered: reading them again takes no time.
  explicit ScannedFiles(std::filesystem::path folder, std::int64_t least_bytes = 64 << 20);
  std::optional<IdRange> find(const TokenFile& file) const;
  /// A folder that cannot be written: nothing is remembered.
  void keep(const TokenFile& file, const IdRange& range) const;

 private:
  bool remembers(const TokenFile& file) const;
  std::filesystem::path place(const TokenFile& file) const;
  std::filesystem::path folder_;
  std::int64_t least_bytes_;
};

/// Scans what is not remembered, alone. Errors: those of scan_ids.
std::vector<IdRange> ids_of(const std::vector<const TokenFile*>& files, const Progress& progress = {});

/// Errors: UserError bad_data where `range`, of the whole file, is not within its vocabulary: file, token,
/// byte offset and id of the first that is not.
void require_in_vocabulary(const TokenFile& file, const IdRange& range);

}  // namespace assay::impl::data
