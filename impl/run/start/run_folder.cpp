#include "impl/run/start/run_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/comm/refusal.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

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
  refuse_together(communicator, [&] {
    if (communicator.rank() != 0) return;
    if (config.resume != spec::Resume::never) return checkpoint::create_durable_folder(chosen);
    for (int number = 2; !claim(chosen); ++number) chosen = config.directory + "-" + std::to_string(number);
  });
  return communicator.all_gather(chosen).front();
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
