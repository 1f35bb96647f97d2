#include "impl/data/checked_ids.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "impl/machine/output_folder.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/text/file.hpp"

namespace assay::impl::data {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "assay/tokens";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache/assay/tokens";
  return {};
}

}  // namespace

std::vector<IdRange> scan_ids(const std::vector<const TokenFile*>& files, std::int64_t part,
                              std::int64_t parts, const Progress& progress) {
  constexpr std::int64_t piece = 1 << 22;  // tokens
  const auto bytes_of = [](const TokenFile& file, std::int64_t tokens) {
    return tokens * width(file.format().type);
  };
  std::int64_t all = 0, done = 0, number = 0;
  for (const TokenFile* file : files) all += bytes_of(*file, file->tokens()) / parts;
  std::vector<IdRange> ranges;
  for (const TokenFile* file : files) {
    IdRange& range = ranges.emplace_back();
    for (std::int64_t first = 0; first < file->tokens(); first += piece) {
      if (number++ % parts != part) continue;
      const std::int64_t count = std::min(piece, file->tokens() - first);
      range.add(file->range(first, count));
      done = std::min(all, done + bytes_of(*file, count));
      if (progress) progress(done, all);
    }
  }
  return ranges;
}

ScannedFiles::ScannedFiles() : ScannedFiles(cache_folder()) {}

ScannedFiles::ScannedFiles(fs::path folder, std::int64_t least_bytes)
    : folder_(std::move(folder)), least_bytes_(least_bytes) {}

bool ScannedFiles::remembers(const TokenFile& file) const {
  return !folder_.empty() && file.file().bytes() >= least_bytes_;
}

fs::path ScannedFiles::place(const TokenFile& file) const {
  const std::string facts = std::to_string(file.file().bytes()) + " " +
                            std::to_string(file.file().changed()) + " " + file.sample() + " " +
                            file.format().description() + " " + std::to_string(file.format().first_byte);
  return folder_ / (spec::content_hash(std::as_bytes(std::span(facts))) + ".txt");
}

std::optional<IdRange> ScannedFiles::find(const TokenFile& file) const {
  if (!remembers(file)) return {};
  try {
    std::istringstream text(spec::read_file(place(file), spec::file_limits::marker));
    std::string title, end;
    IdRange range;
    if (text >> title >> range.smallest >> range.largest >> end && title == "ids" && end == "end")
      return range;
  } catch (const spec::FileFault&) {
    // Not scanned yet.
  }
  return {};
}

void ScannedFiles::keep(const TokenFile& file, const IdRange& range) const {
  if (!remembers(file)) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  try {
    replace_file(OutputFolder(folder_), place(file).filename().string(),
                 "ids " + std::to_string(range.smallest) + " " + std::to_string(range.largest) + " end\n");
  } catch (const UserError&) {
    // The file is read again next time.
  }
}

std::vector<IdRange> ids_of(const std::vector<const TokenFile*>& files, const Progress& progress) {
  const ScannedFiles scanned;
  std::vector<IdRange> ranges(files.size());
  std::vector<const TokenFile*> unknown;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (const auto known = scanned.find(*files[i])) {
      ranges[i] = *known;
    } else {
      unknown.push_back(files[i]);
      places.push_back(i);
    }
  }
  const std::vector<IdRange> found = scan_ids(unknown, 0, 1, progress);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    ranges[places[i]] = found[i];
    scanned.keep(*unknown[i], found[i]);
  }
  return ranges;
}

void require_in_vocabulary(const TokenFile& file, const IdRange& range) {
  if (range.smallest >= 0 && range.largest < file.vocabulary()) return;
  file.verify();
}

}  // namespace assay::impl::data
