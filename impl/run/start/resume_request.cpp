#include "impl/run/start/resume_request.hpp"

#include <filesystem>
#include <set>

#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/data/data_files.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void refuse(ExitCode code, const std::string& text) { throw UserError(code, text); }

bool is_checkpoint(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path / checkpoint::manifest_name, unknown);
}

/// Without a slash at its end, so that its parent is the folder that holds it.
fs::path named(const std::string& text) {
  fs::path path = fs::path(text).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// The checkpoint whose settings the run goes on with.
std::string checkpoint_of(const fs::path& run) {
  if (is_checkpoint(run)) return run.string();
  std::error_code unknown;
  if (!fs::is_directory(run, unknown))
    refuse(
        ExitCode::usage,
        run.string() + ": no such folder; give the folder of a run, which holds run.jsonl and checkpoints");
  const checkpoint::NewestWhole newest = checkpoint::newest_whole(run.string());
  if (newest.path) return *newest.path;
  if (!newest.passed_over.empty())
    refuse(ExitCode::bad_data, run.string() + " holds no whole checkpoint; the newest: " +
                                   newest.passed_over.front().why + "; start the run anew");
  refuse(ExitCode::bad_data,
         run.string() +
             " holds no checkpoint to go on from: the run was not saved, or not yet; start it "
             "anew (checkpoint.every and checkpoint.minutes save on the way, "
             "checkpoint.at_end=on behind the last step)");
}

void refuse_words_of_others(const std::string& change) {
  const spec::Key* key = spec::find_key(change.substr(0, change.find('=')));
  if (key && !key->no_change.empty())
    refuse(ExitCode::usage, "--change " + key->name + ": " + key->no_change);
}

void refuse_a_run_in(const fs::path& folder) {
  std::error_code unknown;
  if (fs::exists(folder, unknown) && !fs::is_empty(folder, unknown))
    refuse(ExitCode::usage, "--into " + spec::quote(folder.string()) +
                                ": holds something already, and a branch gets a folder of its own; give "
                                "another name, or go on with what is there by `assay resume " +
                                folder.string() + "`");
}
}  // namespace

Request resume_request(const ResumeWords& words) {
  for (const std::string& change : words.changes) refuse_words_of_others(change);
  const fs::path run = named(words.run);
  const std::string from = checkpoint_of(run);
  Request request;
  spec::RunConfig& config = request.config;
  const checkpoint::Manifest manifest = checkpoint::read_manifest(from);
  config = spec::load_dump(manifest.config, from, words.changes, manifest.derived);
  data::name_data_files(config);
  request.goes_on = true;
  for (const std::string& change : words.changes)
    request.changes.push_back(change.substr(0, change.find('=')));
  const bool one_checkpoint = is_checkpoint(run);
  const bool in_a_run = run.parent_path().filename() == "checkpoints";
  if (!words.into.empty()) {
    refuse_a_run_in(words.into);
    config.directory = words.into;
  } else if (one_checkpoint && !in_a_run) {
    refuse(ExitCode::usage, run.string() +
                                " is a checkpoint outside of a run's folder: say by --into FOLDER where the "
                                "run goes on");
  } else {
    config.directory = (one_checkpoint ? run.parent_path().parent_path() : run).string();
    if (config.directory.empty()) config.directory = ".";
  }
  const bool newest_of_its_own = !one_checkpoint && words.into.empty();
  config.resume = newest_of_its_own ? spec::Resume::automatic : spec::Resume::path;
  config.resume_path = newest_of_its_own ? "" : run.string();
  return request;
}

std::optional<RanksBefore> ranks_before(const std::string& run) try {
  fs::path folder = named(run);
  if (is_checkpoint(folder)) folder = folder.parent_path().parent_path();
  std::optional<RanksBefore> out;
  for (const spec::record::Event& event : spec::record::starts_and_ends((folder / "run.jsonl").string())) {
    const auto* start = std::get_if<spec::record::RunStart>(&event);
    if (!start) continue;
    std::set<std::string> hosts;
    for (const auto& rank : start->ranks) hosts.insert(rank.host);
    out = {.ranks = std::max<std::int64_t>(1, std::ssize(start->ranks)),
           .hosts = std::max<std::int64_t>(1, std::ssize(hosts))};
  }
  return out;
} catch (const spec::FileFault&) {
  return {};
}

}  // namespace assay::impl::run
