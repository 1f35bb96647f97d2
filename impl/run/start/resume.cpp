#include "impl/run/start/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "impl/checkpoint/folder.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

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
/// Where a run writes, how often it saves, prints and is validated, and on what: no step depends on it, but
/// on what is held out of the data.
bool is_about_output(const std::string& name) {
  return name.starts_with("run.") || name.starts_with("checkpoint.") || name.starts_with("log.") ||
         name.starts_with("sample.") || (name.starts_with("eval.") && name != "eval.share");
}

/// By which machine and kernels, and in which order, the same sums are made: results differ by their
/// rounding, if at all.
bool changes_rounding_alone(const std::string& name) {
  constexpr std::string_view names[] = {
      "batch.micro",           "data.prefetch",         "compute.device",
      "compute.attention",     "compute.deterministic", "compute.cuda_graph",
      "compute.threads",       "memory.recompute",      "compute.linear_weights",
      "parallel.data",         "parallel.shard_ranks",  "parallel.tensor",
      "parallel.expert",       "parallel.reduce",       "parallel.check_replicas_every",
      "parallel.stall_seconds"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string shown(const std::vector<checkpoint::DataFile>& data, std::size_t i) {
  if (i >= data.size()) return "no file";
  return spec::quote(data[i].path) + " (" + spec::grouped(data[i].bytes) + " bytes, sample " +
         data[i].sample + ")";
}

/// The first file that holds other tokens than the one at its place did; empty where all hold the same.
std::string other_data(const std::vector<checkpoint::DataFile>& now,
                       const std::vector<checkpoint::DataFile>& then) {
  std::size_t i = 0;
  while (i < now.size() && i < then.size() && now[i].same_content(then[i])) ++i;
  if (i == now.size() && i == then.size()) return "";
  return "the content of data.paths: file " + std::to_string(i + 1) + " is " + shown(now, i) + ", was " +
         shown(then, i);
}
}  // namespace

ResumeChanges refuse_other_settings(const spec::RunConfig& config,
                                    const std::vector<checkpoint::DataFile>& data,
                                    const checkpoint::State& then, const std::string& path) {
  const spec::RunConfig before = spec::load_dump(then.config, path);
  const auto data_then = checkpoint::data_of(path);
  ResumeChanges changes{.extended = then.step >= before.steps && config.steps > before.steps, .settings = {}};
  std::string refused = data_then ? other_data(data, *data_then) : "";
  const auto now_set = spec::settings(config), then_set = spec::settings(before);
  for (std::size_t i = 0; i < now_set.size(); ++i) {
    const auto& [name, now] = now_set[i];
    if (now == then_set[i].second || is_about_output(name)) continue;
    const bool extends = changes.extended && (name == "train.steps" || name.starts_with("schedule."));
    const bool compared = name == "data.paths" && data_then;
    // The batch so far is made of micro-batches.
    const bool by_micro_batches = config.balance_over == spec::load_balancing::Form::running;
    if (extends || compared || (changes_rounding_alone(name) && !(by_micro_batches && name == "batch.micro")))
      changes.settings.push_back({.name = name, .before = then_set[i].second, .now = now});
    else
      refused += (refused.empty() ? "" : "; ") + name + " is " + spec::shown(now) + ", was " +
                 spec::shown(then_set[i].second);
  }
  if (!refused.empty())
    throw UserError(ExitCode::usage, path + " was saved by a run with other settings: " + refused +
                                         "; give the same ones, or start a new run in another run.directory");
  return changes;
}

std::optional<ResumePoint> resume_point(const spec::RunConfig& config,
                                        const std::vector<checkpoint::DataFile>& data) {
  ResumePoint point{.path = resume_path(config), .state = {}, .changes = {}};
  if (point.path.empty()) return {};
  point.state = checkpoint::read_state(point.path);
  point.changes = refuse_other_settings(config, data, point.state, point.path);
  return point;
}

}  // namespace assay::impl::run
