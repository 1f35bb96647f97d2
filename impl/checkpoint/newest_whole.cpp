#include "impl/checkpoint/newest_whole.hpp"

#include <algorithm>
#include <filesystem>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

std::string damage_in(const std::string& path, Look look) try {
  const StoredState stored(path, "");
  for (std::size_t file = 0; file < stored.manifest().files.size(); ++file)
    if (look == Look::every_byte)
      stored.check_file(file);
    else
      stored.check_header(file);
  return "";
} catch (const UserError& error) {
  return error.what();
}

NewestWhole newest_whole(const std::string& directory, Look look, const std::vector<PassedOver>& known) {
  const DiskCall disk;
  NewestWhole out;
  std::vector<Found> found = marked_checkpoints(fs::path(directory) / "checkpoints");
  std::ranges::reverse(found);
  for (const Found& each : found) {
    const std::string path = each.path.string();
    const auto told = std::ranges::find(known, path, &PassedOver::path);
    const std::string why = told != known.end() ? told->why : damage_in(path, look);
    if (why.empty()) {
      out.path = path;
      return out;
    }
    out.passed_over.push_back({path, why});
  }
  return out;
}

std::string set_aside(const std::string& path) {
  const DiskCall disk;
  std::string to = path + ".damaged";
  std::error_code error;
  for (int number = 2; fs::exists(to, error); ++number) to = path + ".damaged-" + std::to_string(number);
  fs::rename(path, to, error);
  if (error)
    throw UserError(ExitCode::io, "cannot rename the damaged checkpoint " + path + " to " + to + ": " +
                                      error.message() +
                                      "; move it away, since what this run saves at its "
                                      "step needs the name");
  sync_folder(fs::path(path).parent_path());
  return to;
}

}  // namespace assay::impl::checkpoint
