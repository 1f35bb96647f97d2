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

std::string set_aside(const std::string& path, const std::string& ending) {
  const DiskCall disk;
  const std::string name = fs::path(path).filename().string();
  std::string to = name + ending;
  try {
    const OutputFolder parent = OutputFolder::own(fs::path(path).parent_path());
    for (int number = 2; parent.look(to) != Entry::none; ++number)
      to = name + ending + "-" + std::to_string(number);
    parent.rename(name, to);
    parent.sync();
  } catch (const UserError& error) {
    throw UserError(ExitCode::io,
                    "a checkpoint that is passed over stays in the way: " + std::string(error.what()) +
                        "; move it away, since what this run saves at its step needs the name");
  }
  return (fs::path(path).parent_path() / to).string();
}

}  // namespace assay::impl::checkpoint
