#include "impl/run/start/run_folder.hpp"

#include <unistd.h>

#include <filesystem>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

namespace {
constexpr const char* record_name = "run.jsonl";

/// True when the folder held no run and is now this one's. Of several that ask at once, one creates the
/// record.
bool claim(const std::string& folder) {
  std::error_code unknown;
  if (fs::exists(folder, unknown) && !fs::is_directory(folder, unknown))
    throw UserError(ExitCode::io, "run.directory=" + folder +
                                      " is a file, and a run needs a folder; give another run.directory");
  if (fs::exists(fs::path(folder) / "checkpoints", unknown)) return false;
  checkpoint::create_durable_folder(folder);
  const auto record = OutputFolder(folder).create(record_name);
  if (record) close(*record);
  return record.has_value();
}

std::string free_folder(const std::string& directory) {
  std::string chosen = directory;
  for (int number = 2; !claim(chosen); ++number) chosen = directory + "-" + std::to_string(number);
  return chosen;
}

/// What a run writes to or removes from is in its folder itself. Found out before anything is computed.
void refuse_links(const std::string& folder) {
  const OutputFolder here(folder);
  for (const char* name : {record_name, "checkpoints", "profile"})
    if (here.look(name) == Entry::link)
      throw UserError(ExitCode::io,
                      (here.path() / name).string() +
                          " is a link, and a run writes through none within its folder; put what "
                          "it leads to there, or give another run.directory (which may itself be "
                          "a link)");
}
}  // namespace

std::string run_directory(const spec::RunConfig& config, Communicator& communicator) {
  std::string chosen = config.directory;
  refuse_together(communicator, [&] {
    if (communicator.rank() != 0) return;
    if (config.resume != spec::Resume::never)
      checkpoint::create_durable_folder(chosen);
    else
      chosen = free_folder(config.directory);
    refuse_links(chosen);
  });
  return communicator.all_gather(chosen).front();
}

std::string another_folder(const std::string& directory) {
  std::string faults;
  std::error_code nowhere;
  const fs::path path = fs::path(directory).lexically_normal(), here = fs::current_path(nowhere),
                 name = path.has_filename() ? path.filename() : path.parent_path().filename();
  for (const fs::path& each : {fs::path(directory), fs::path(directory + "-2"), here / name}) try {
      if (each.is_absolute() || !nowhere) return free_folder(each.string());
    } catch (const UserError& error) {
      faults += std::string("; ") + error.what();
    }
  throw UserError(ExitCode::io, "the run's folder " + directory +
                                    " was removed, renamed or unmounted, and no other one can be made" +
                                    faults);
}

void unclaim(const std::string& directory) {
  std::error_code unknown;
  fs::remove(fs::path(directory) / record_name, unknown);
  fs::remove(directory, unknown);
}

std::optional<std::string> linked_checkpoints(const std::string& directory) {
  std::string names;
  for (const checkpoint::Found& each : checkpoint::marked_checkpoints(fs::path(directory) / "checkpoints"))
    if (each.linked) names += (names.empty() ? "" : ", ") + each.path.string();
  if (names.empty()) return {};
  return names + ": a link is read as a checkpoint, and never removed; checkpoint.keep does not count it";
}

std::string way_to_go_on(const std::string& directory) {
  std::error_code unknown;
  // A folder that is not there is on another host's disk.
  if (fs::exists(directory, unknown) &&
      checkpoint::committed_checkpoints(fs::path(directory) / "checkpoints").empty())
    return "no checkpoint of " + directory +
           " is committed yet: run the same command anew; checkpoint.every=N saves on the way";
  return "go on with `assay resume " + spec::shell_word(directory) + "`";
}

}  // namespace assay::impl::run
