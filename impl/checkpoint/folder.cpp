#include "impl/checkpoint/folder.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/checkpoint/partial_folder.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
/// Step of "step_00000100", nothing for any other name.
std::optional<std::int64_t> step_in_name(const std::string& name) {
  constexpr std::string_view prefix = "step_";
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 8) return {};
  std::int64_t step = 0;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || folder_name(step) != name) return {};
  return step;
}

/// Entries of `parent`, an empty list when there is no such folder.
std::vector<fs::path> entries(const fs::path& parent) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
    paths.push_back(it->path());
  return paths;
}

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error);
}

/// Those of a run's own, which may go.
std::vector<Found> removable_checkpoints(const fs::path& parent) {
  std::vector<Found> found = committed_checkpoints(parent);
  std::erase_if(found, [](const Found& checkpoint) { return checkpoint.linked; });
  return found;
}
}  // namespace

std::string folder_name(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return "step_" + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

namespace {
/// A copy of a whole checkpoint is whole, and of another step than its name says.
std::string misnamed(const fs::path& folder, std::int64_t step) {
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  const auto in_name = step_in_name(named.filename().string());
  if (!in_name || *in_name == step) return "";
  return "holds step " + std::to_string(step) + ", and its name says step " + std::to_string(*in_name) +
         ": it is a copy, or was renamed";
}

/// Whatever its folder is called.
Manifest manifest_in(const fs::path& folder) {
  const fs::path path = folder / manifest_name;
  return manifest_from_json(read_whole(path, spec::file_limits::manifest), path.string());
}
}  // namespace

Manifest read_manifest(const fs::path& folder) {
  Manifest manifest = manifest_in(folder);
  if (const std::string wrong = misnamed(folder, manifest.step); !wrong.empty())
    throw UserError(ExitCode::bad_data, folder.string() + ": checkpoint_c6: " + wrong + "; call it " +
                                            folder_name(manifest.step) + ", or move it away");
  return manifest;
}

namespace {
/// Whether the marker holds the hash of the manifest.
bool marker_is_right(const fs::path& folder) try {
  std::error_code error;
  return fs::is_regular_file(folder / marker_name, error) &&
         fs::is_regular_file(folder / manifest_name, error) &&
         read_whole(folder / marker_name, spec::file_limits::marker) == hash_of_manifest(folder) + "\n";
} catch (const UserError&) {
  return false;  // too long, or the disk does not give it
}
}  // namespace

std::string misnamed(const fs::path& folder) try {
  const std::string wrong = marker_is_right(folder) ? misnamed(folder, manifest_in(folder).step) : "";
  return wrong.empty() ? "" : folder.string() + ": " + wrong;
} catch (const UserError&) {
  return "";
}

Manifest committed_manifest(const fs::path& folder, const std::string& advice) {
  // checkpoint_c1
  if (!marker_is_right(folder))
    throw UserError(ExitCode::bad_data,
                    folder.string() +
                        ": checkpoint_c1: not a committed checkpoint (COMMITTED is missing or does not "
                        "belong to manifest.json)" +
                        advice);
  return read_manifest(folder);
}

std::string hash_of_manifest(const fs::path& folder) {
  const std::string manifest = read_whole(folder / manifest_name, spec::file_limits::manifest);
  return content_hash(std::as_bytes(std::span(manifest)));
}

void write_manifest(const OutputFolder& folder, const Manifest& manifest) {
  const std::string json = to_json(manifest);
  write_text(folder, manifest_name, json);
  write_text(folder, marker_name, content_hash(std::as_bytes(std::span(json))) + "\n");
  sync_folder(folder.path());
}

bool committed(const fs::path& folder) try {
  committed_manifest(folder, "");
  return true;
} catch (const UserError&) {
  return false;
}

std::vector<Found> marked_checkpoints(const fs::path& parent) {
  std::vector<Found> found;
  for (const fs::path& path : entries(parent)) {
    std::error_code error;
    const auto step = step_in_name(path.filename().string());
    if (step && fs::exists(path / marker_name, error)) found.push_back({*step, path, is_link(path)});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.step < b.step; });
  return found;
}

std::vector<Found> committed_checkpoints(const fs::path& parent) {
  const DiskCall disk;
  std::vector<Found> found = marked_checkpoints(parent);
  std::erase_if(found, [](const Found& checkpoint) { return !committed(checkpoint.path); });
  return found;
}

std::vector<spec::record::StatedPlace> places_in_record(const fs::path& directory) {
  std::vector<spec::record::StatedPlace> places;
  // A link leads to another run's checkpoint, or one of this run that was moved away.
  for (const Found& found : removable_checkpoints(directory / "checkpoints")) try {
      const Manifest manifest = read_manifest(found.path);
      if (!manifest.record.empty()) places.push_back({.hash = manifest.record, .by = found.path.string()});
    } catch (const UserError&) {
      // Of a version that is not known, or damaged: who loads it says so.
    }
  return places;
}

void remove_leftovers(const fs::path& parent) {
  const DiskCall disk;
  const OutputFolder folder = OutputFolder::own(parent);
  for (const fs::path& path : entries(parent)) {
    const std::string name = path.filename().string();
    const bool partial = name.starts_with(".step_") && name.ends_with(".partial");
    std::error_code error;
    // A folder with a marker that does not match is evidence of damage and stays for the user to look at.
    if (partial || (step_in_name(name) && !is_link(path) && !fs::exists(path / marker_name, error))) try {
        folder.remove(name);
      } catch (const UserError&) {
        // It is in nobody's way.
      }
  }
}

std::optional<fs::path> best_checkpoint(const fs::path& parent) {
  const DiskCall disk;
  std::error_code error;
  const fs::path name = fs::read_symlink(parent / best_name, error);
  if (error || !step_in_name(name.string()) || !committed(parent / name)) return {};
  return parent / name;
}

void name_best(const fs::path& parent, const fs::path& path) {
  const DiskCall disk;
  const std::string partial = "." + std::string(best_name) + ".partial";
  try {
    const OutputFolder folder = OutputFolder::own(parent);
    folder.remove(partial);
    folder.link(path.filename().string(), partial);
    folder.rename(partial, best_name);
    folder.sync();
  } catch (const UserError& error) {
    throw UserError(ExitCode::io, path.string() + " is committed, but cannot be named " +
                                      (parent / best_name).string() + ": " + error.what());
  }
}

namespace {
/// The marker first, so that a crash leaves no checkpoint that seems whole.
void remove_checkpoint(const fs::path& path) {
  const OutputFolder parent = OutputFolder::own(path.parent_path());
  const std::string name = path.filename().string();
  const OutputFolder folder = parent.within(name);
  folder.remove(marker_name);
  folder.sync();
  parent.remove(name);
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const FileEntry& file : read_manifest(folder).files) bytes += file.bytes;
  return bytes;
}
}  // namespace

std::vector<fs::path> make_room(const fs::path& parent, std::int64_t bytes,
                                const std::optional<fs::path>& also) {
  const DiskCall disk;
  const auto free = free_bytes(parent);
  const auto safe = newest_whole(parent.parent_path().string()).path;
  if (!free || *free >= bytes || !safe) return {};
  std::vector<fs::path> removed;
  std::int64_t room = *free;
  for (const Found& each : removable_checkpoints(parent)) {
    if (room >= bytes || each.path == fs::path(*safe)) break;
    if (each.path == also) continue;
    room += bytes_in(each.path);
    removed.push_back(each.path);
  }
  if (room < bytes) return {};
  for (const fs::path& folder : removed) remove_checkpoint(folder);
  return removed;
}

void retain_newest(const fs::path& parent, std::int64_t keep, const std::optional<fs::path>& also) {
  const DiskCall disk;
  const std::vector<Found> found = removable_checkpoints(parent);
  const auto count = static_cast<std::int64_t>(found.size());
  for (std::int64_t i = 0; i + std::max<std::int64_t>(keep, 1) < count; ++i) {
    const fs::path& folder = found[static_cast<std::size_t>(i)].path;
    if (folder != also) remove_checkpoint(folder);
  }
  std::error_code error;
  if (is_link(parent / best_name) && !fs::exists(parent / best_name, error))
    OutputFolder::own(parent).remove(best_name);
}

}  // namespace assay::impl::checkpoint
