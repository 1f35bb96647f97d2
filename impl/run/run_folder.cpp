#include "impl/run/run_folder.hpp"

#include <filesystem>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/folder.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

std::string resume_path(const spec::RunConfig& config) {
  if (config.resume == spec::Resume::never) return "";
  if (config.resume == spec::Resume::automatic) return checkpoint::newest(config.directory).value_or("");
  if (fs::exists(fs::path(config.resume_path) / checkpoint::manifest_name)) return config.resume_path;
  if (const auto newest = checkpoint::newest(config.resume_path)) return *newest;
  throw UserError(ExitCode::bad_data,
                  "checkpoint.resume=" + config.resume_path +
                      ": holds no checkpoint; give a checkpoint folder (…/checkpoints/step_00000100), "
                      "a run folder, or checkpoint.resume=auto");
}

std::string run_directory(const spec::RunConfig& config, Communicator& communicator) {
  std::string chosen = config.directory;
  if (communicator.rank() == 0 && config.resume == spec::Resume::never) {
    const auto taken = [](const std::string& folder) {
      return fs::exists(fs::path(folder) / "run.jsonl") || fs::exists(fs::path(folder) / "checkpoints");
    };
    for (int number = 2; taken(chosen); ++number) chosen = config.directory + "-" + std::to_string(number);
  }
  return communicator.all_gather(chosen).front();
}

void refuse_other_settings(const spec::RunConfig& config, const std::string& checkpoint_config,
                           const std::string& path) {
  const auto now = spec::settings(config);
  const auto then = spec::settings(spec::load_text(checkpoint_config, path, {}));
  std::string differing;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string& name = now[i].first;
    // What is computed must stay; where it is written, how often it is saved or printed, and by which machine
    // may change.
    const bool free = name.starts_with("run.") || name.starts_with("checkpoint.") ||
                      name.starts_with("log.") || name.starts_with("sample.") || name == "compute.threads" ||
                      name == "compute.device" || name == "batch.micro" || name == "data.prefetch";
    if (!free && now[i].second != then[i].second) differing += (differing.empty() ? "" : ", ") + name;
  }
  if (!differing.empty())
    throw UserError(ExitCode::usage, path + " was saved by a run with other settings: " + differing +
                                         "; give the same ones, or start a new run in another run.directory");
}

}  // namespace assay::impl::run
