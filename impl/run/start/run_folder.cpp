#include "impl/run/start/run_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

namespace {
/// The checkpoint that checkpoint.resume=PATH names: PATH itself, or the newest of the run folder PATH.
std::string named_checkpoint(const std::string& path) {
  std::error_code unknown;
  if (fs::exists(fs::path(path) / checkpoint::manifest_name, unknown)) return path;
  if (const auto newest = checkpoint::newest(path)) return *newest;
  throw UserError(ExitCode::bad_data,
                  "checkpoint.resume=" + path +
                      ": holds no checkpoint; give a checkpoint folder (…/checkpoints/step_00000100), "
                      "a run folder, or checkpoint.resume=auto");
}

void refuse_later_checkpoints(const std::string& directory, const std::string& from) {
  const auto found = checkpoint::marked_checkpoints(fs::path(directory) / "checkpoints");
  if (found.empty()) return;
  const std::int64_t step = checkpoint::step_of(from);
  const checkpoint::Found& last = found.back();
  std::error_code ignored;
  if (last.step < step || (last.step == step && fs::equivalent(last.path, from, ignored))) return;
  throw UserError(ExitCode::usage, from + " is of step " + std::to_string(step) + ", but " + directory +
                                       " already holds " + last.path.string() +
                                       ": what this run saves would be lost behind it; give another "
                                       "run.directory, or move the later checkpoints away");
}
}  // namespace

std::string resume_path(const spec::RunConfig& config) {
  if (config.resume == spec::Resume::never) return "";
  if (config.resume == spec::Resume::automatic) return checkpoint::newest(config.directory).value_or("");
  std::string path = named_checkpoint(config.resume_path);
  refuse_later_checkpoints(config.directory, path);
  return path;
}

namespace {
/// True when the folder held no run and is now this one's. Of several that ask at once, one creates the
/// record.
bool claim(const std::string& folder) {
  std::error_code unknown;
  if (fs::exists(folder, unknown) && !fs::is_directory(folder, unknown))
    throw UserError(ExitCode::io, "run.directory=" + folder +
                                      " is a file, and a run needs a folder; give another run.directory");
  if (fs::exists(fs::path(folder) / "checkpoints", unknown)) return false;
  checkpoint::create_durable_folder(folder);
  const std::string record = folder + "/run.jsonl";
  const int descriptor = open(record.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0 && errno == EEXIST) return false;
  if (descriptor < 0)
    throw UserError(ExitCode::io,
                    "cannot create " + record + ": " + std::strerror(errno) + "; give another run.directory");
  close(descriptor);
  return true;
}
}  // namespace

std::string run_directory(const spec::RunConfig& config, Communicator& communicator) {
  std::string chosen = config.directory;
  if (communicator.rank() == 0 && config.resume == spec::Resume::never) {
    for (int number = 2; !claim(chosen); ++number) chosen = config.directory + "-" + std::to_string(number);
  } else if (communicator.rank() == 0) {
    checkpoint::create_durable_folder(chosen);
  }
  return communicator.all_gather(chosen).front();
}

bool refuse_other_settings(const spec::RunConfig& config, const checkpoint::State& then,
                           const std::string& path) {
  const spec::RunConfig before = spec::load_dump(then.config, path);
  const bool extended = then.step >= before.steps && config.steps > before.steps;
  const auto now_set = spec::settings(config), then_set = spec::settings(before);
  std::string differing;
  for (std::size_t i = 0; i < now_set.size(); ++i) {
    const std::string& name = now_set[i].first;
    // What is computed must stay; where it is written, how often it is saved or printed, and by which machine
    // may change.
    const bool free =
        name.starts_with("run.") || name.starts_with("checkpoint.") || name.starts_with("log.") ||
        name.starts_with("sample.") || name == "compute.threads" || name == "compute.device" ||
        name == "compute.cuda_graph" || name == "compute.deterministic" || name == "batch.micro" ||
        name == "data.prefetch" || name == "parallel.data" || name == "parallel.shard_ranks" ||
        name == "parallel.gather" || name == "parallel.scatter" || name == "parallel.check_replicas_every" ||
        (extended && (name == "train.steps" || name.starts_with("schedule.")));
    if (!free && now_set[i].second != then_set[i].second) differing += (differing.empty() ? "" : ", ") + name;
  }
  if (!differing.empty())
    throw UserError(ExitCode::usage, path + " was saved by a run with other settings: " + differing +
                                         "; give the same ones, or start a new run in another run.directory");
  return extended;
}

std::string way_to_go_on(const std::string& directory) {
  std::error_code unknown;
  // A folder that is not there is on another host's disk.
  if (fs::exists(directory, unknown) &&
      checkpoint::committed_checkpoints(fs::path(directory) / "checkpoints").empty())
    return "no checkpoint of " + directory +
           " is committed yet: run the same command anew; checkpoint.every=N saves on the way";
  return "go on with the same command and run.directory=" + directory + " checkpoint.resume=auto";
}

}  // namespace assay::impl::run
