#include "impl/data/data_files.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {

namespace {
namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

bool ends_in_one_of(const std::string& path, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* ending) { return path.ends_with(ending); });
}

[[noreturn]] void refuse_empty(const char* setting, const std::string& entry, const std::string& looked_for) {
  throw UserError(ExitCode::usage,
                  std::string(setting) + ": " + spec::quote(entry) + " " + looked_for +
                      "; name token files, a folder of them, or a pattern such as tokens/*.bin");
}

Paths in_folder(const std::string& folder) {
  Paths found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    std::error_code unknown;
    if (ends_in_one_of(path, {".bin", ".npy"}) && !fs::is_directory(path, unknown)) found.push_back(path);
  }
  if (error) throw UserError(ExitCode::io, spec::quote(folder) + " cannot be read: " + error.message());
  std::ranges::sort(found);
  return found;
}

Paths matching(const std::string& pattern) {
  glob_t matches = {};
  const int failed = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  Paths found;
  for (std::size_t i = 0; failed == 0 && i < matches.gl_pathc; ++i) found.emplace_back(matches.gl_pathv[i]);
  globfree(&matches);
  if (failed != 0 && failed != GLOB_NOMATCH)
    throw UserError(ExitCode::io,
                    spec::quote(pattern) + " cannot be matched: a folder on the way cannot be read");
  std::ranges::sort(found);
  return found;
}

Paths files_of(const char* setting, const std::string& entry) {
  std::error_code unknown;
  if (fs::is_directory(entry, unknown)) {
    Paths found = in_folder(entry);
    if (found.empty()) refuse_empty(setting, entry, "is a folder without a file that ends in .bin or .npy");
    return found;
  }
  if (fs::exists(entry, unknown) || entry.find_first_of("*?[") == std::string::npos) return {entry};
  Paths found;
  for (const std::string& match : matching(entry)) {
    if (fs::is_directory(match, unknown))
      std::ranges::copy(in_folder(match), std::back_inserter(found));
    else if (!ends_in_one_of(match, {".idx", ".ends", ".json"}))
      found.push_back(match);
  }
  if (found.empty()) refuse_empty(setting, entry, "matches no token file");
  return found;
}
}  // namespace

void name_data_files(spec::RunConfig& config) {
  Paths named;
  std::vector<std::int64_t> of_entry;
  for (const std::string& entry : config.data_paths) {
    const Paths files = files_of("data.paths", entry);
    of_entry.push_back(std::ssize(files));
    named.insert(named.end(), files.begin(), files.end());
  }
  std::size_t at = 0;
  for (spec::DataSource& source : config.mixture) {
    const std::int64_t entries = source.files;
    source.files = 0;
    for (std::int64_t i = 0; i < entries; ++i)
      source.files += of_entry[at++];  // config_c40: as many as there are
  }
  config.data_paths = std::move(named);
  named.clear();
  for (const std::string& entry : config.eval_paths)
    std::ranges::copy(files_of("eval.paths", entry), std::back_inserter(named));
  config.eval_paths = std::move(named);
}

}  // namespace assay::impl::data
