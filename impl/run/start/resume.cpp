#include "impl/run/start/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/record/event.hpp"
#include "spec/record/read.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

namespace {
/// "; its newer ones are damaged: ..."
std::string damaged_text(const std::vector<checkpoint::PassedOver>& damaged) {
  std::string text;
  for (const checkpoint::PassedOver& each : damaged) text += (text.empty() ? "" : "; ") + each.why;
  return text;
}

/// The checkpoint that checkpoint.resume=PATH names: PATH itself, or the newest whole one of the run folder
/// PATH.
checkpoint::NewestWhole named_checkpoint(const std::string& path,
                                         const std::vector<checkpoint::PassedOver>& known) {
  std::error_code unknown;
  if (fs::exists(fs::path(path) / checkpoint::manifest_name, unknown)) return {path, {}};
  checkpoint::NewestWhole newest = checkpoint::newest_whole(path, checkpoint::Look::structure, known);
  if (newest.path) return newest;
  if (!newest.passed_over.empty())
    throw UserError(ExitCode::bad_data, "checkpoint.resume=" + path + ": no checkpoint there is whole: " +
                                            damaged_text(newest.passed_over));
  throw UserError(ExitCode::bad_data,
                  "checkpoint.resume=" + path +
                      ": holds no checkpoint; give a checkpoint folder (…/checkpoints/step_00000100), "
                      "a run folder, or checkpoint.resume=auto");
}

/// Whether the last run in the record of `directory` ended as it was to end.
bool is_done(const std::string& directory) {
  std::ifstream record(fs::path(directory) / "run.jsonl");
  std::string last;  // start or end of a run
  for (std::string line; std::getline(record, line);)
    if (std::min(line.find("\"run_start\""), line.find("\"run_end\"")) <= 20) last = line;
  try {
    const auto event = spec::record::from_json(last, "");
    const auto* end = std::get_if<spec::record::RunEnd>(&event);
    return end && end->reason == spec::record::EndReason::done;
  } catch (const UserError&) {
    return false;  // no record, or a torn line
  }
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

checkpoint::NewestWhole find_resume(const spec::RunConfig& config,
                                    const std::vector<checkpoint::PassedOver>& known) {
  if (config.resume == spec::Resume::never) return {};
  if (config.resume == spec::Resume::path) {
    checkpoint::NewestWhole found = named_checkpoint(config.resume_path, known);
    refuse_later_checkpoints(config.directory, *found.path);
    return found;
  }
  checkpoint::NewestWhole newest =
      checkpoint::newest_whole(config.directory, checkpoint::Look::structure, known);
  // To begin anew would lose what is left of the run.
  if (!newest.path && !newest.passed_over.empty())
    throw UserError(ExitCode::bad_data,
                    config.directory + ": no checkpoint there is whole: " + damaged_text(newest.passed_over) +
                        "; move " + config.directory + "/checkpoints away and start anew");
  return newest;
}

std::string resume_path(const spec::RunConfig& config) { return find_resume(config).path.value_or(""); }

namespace {
/// Where a run writes, how often it saves, prints and is validated, and on what: no step depends on it, but
/// on what is held out of the data.
bool is_about_output(const std::string& name) {
  return name.starts_with("run.") || name.starts_with("checkpoint.") || name.starts_with("log.") ||
         name.starts_with("profile.") || name.starts_with("sample.") ||
         (name.starts_with("eval.") && name != "eval.share");
}

/// By which machine and kernels, and in which order, the same sums are made, and what becomes of a step that
/// is not finite: results differ by their rounding, if at all.
bool changes_rounding_alone(const std::string& name) {
  constexpr std::string_view names[] = {"batch.micro",
                                        "data.prefetch",
                                        "compute.device",
                                        "compute.attention",
                                        "compute.deterministic",
                                        "compute.cuda_graph",
                                        "compute.threads",
                                        "memory.recompute",
                                        "compute.linear_weights",
                                        "parallel.data",
                                        "parallel.shard_ranks",
                                        "parallel.tensor",
                                        "parallel.expert",
                                        "parallel.reduce",
                                        "parallel.check_replicas_every",
                                        "parallel.stall_seconds",
                                        "train.on_non_finite",
                                        "train.max_skipped"};
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

namespace {
bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// What the weights and moments of a checkpoint are of: nobody can ask for another.
bool is_of_the_state(const std::string& name) {
  return is_one_of(name,
                   {"model.name", "model.weights", "model.init_std", "compute.dtype", "optimizer.states"});
}
}  // namespace

ResumeChanges refuse_other_settings(const Request& request, const std::vector<checkpoint::DataFile>& data,
                                    const checkpoint::State& then, const std::string& path) {
  const spec::RunConfig& config = request.config;
  const spec::RunConfig before = spec::load_dump(then.config, path);
  const auto data_then = checkpoint::data_of(path);
  const auto asked = [&](const std::string& name) {
    return std::ranges::find(request.changes, name) != request.changes.end();
  };
  // Of steps and tokens one follows from the other and the batch.
  const bool asked_length = asked("train.steps") || asked("train.tokens") ||
                            (config.tokens > 0 && (asked("batch.sequences") || asked("batch.ramp") ||
                                                   asked("batch.sequence_length")));
  ResumeChanges changes{.extended = then.step >= before.steps && config.steps > before.steps, .settings = {}};
  std::string refused, may_be_asked;
  bool other_tokens = false;  // asked for
  const auto refuse = [&](const std::string& text) { refused += (refused.empty() ? "" : "; ") + text; };
  const std::string other = data_then ? other_data(data, *data_then) : "";
  if (!other.empty() && asked("data.paths"))
    other_tokens = true;
  else if (!other.empty())
    refuse(other);
  const auto now_set = spec::settings(config), then_set = spec::settings(before);
  for (std::size_t i = 0; i < now_set.size(); ++i) {
    const auto& [name, now] = now_set[i];
    const spec::Value& was = then_set[i].second;
    if (now == was || is_about_output(name)) continue;
    const bool of_length = is_one_of(name, {"train.steps", "train.tokens"});
    const bool extends = changes.extended && (of_length || name.starts_with("schedule."));
    const bool same_files = data_then && other.empty();
    const bool moved = name == "data.paths" && same_files;
    // Files that know their type are refused where another is stated.
    const bool restated =
        name == "data.dtype" && same_files && (config.data_dtype.empty() || before.data_dtype.empty());
    // The batch so far is made of micro-batches.
    const bool by_micro_batches = config.balance_over == spec::load_balancing::Form::running;
    const bool rounds = changes_rounding_alone(name) && !(by_micro_batches && name == "batch.micro");
    if (extends || moved || restated || rounds) {
      changes.settings.push_back({.name = name, .before = was, .now = now, .asked = {}});
    } else if ((asked(name) || (of_length && asked_length)) && !is_of_the_state(name)) {
      changes.settings.push_back({.name = name, .before = was, .now = now, .asked = true});
    } else if (name != "data.paths" || !data_then) {
      refuse(name + " is " + spec::shown(now) + ", was " + spec::shown(was) +
             (is_of_the_state(name) && asked(name) ? ", and weights and moments are of that" : ""));
      if (may_be_asked.empty() && !is_of_the_state(name)) may_be_asked = name;
    }
  }
  // The steps that are done had another batch, which says where their samples end.
  if (config.sequences != before.sequences && asked("batch.sequences") && !asked("batch.ramp")) {
    changes.batch = spec::changed_at(spec::global_batch(before), then.step, config.sequences);
    spec::RunConfig ramped = config;
    ramped.ramp = changes.batch->ramp;
    for (spec::record::ChangedSetting& setting : changes.settings)
      if (config.tokens > 0 && setting.name == "train.steps") setting.now = spec::steps_of_tokens(ramped);
    const spec::Key& ramp = *spec::find_key("batch.ramp");
    if (ramped.ramp != before.ramp)
      changes.settings.push_back(
          {.name = ramp.name, .before = ramp.get(before), .now = ramp.get(ramped), .asked = true});
  }
  if (asked("batch.ramp") && spec::sequences_before(spec::global_batch(config), then.step) !=
                                 spec::sequences_before(spec::global_batch(before), then.step))
    refuse(
        "batch.ramp gives the " + spec::grouped(then.step) +
        " steps that are done another number of sequences, so that samples would be left out or read twice: "
        "begin it with the stages that they had");
  // Files of the same names that hold other tokens.
  const auto names_data = [](const auto& setting) { return setting.name == "data.paths"; };
  if (other_tokens && std::ranges::none_of(changes.settings, names_data)) {
    const spec::Value paths = config.data_paths;
    changes.settings.push_back({.name = "data.paths", .before = paths, .now = paths, .asked = true});
  }
  if (!refused.empty())
    throw UserError(ExitCode::usage, path + " was saved by a run with other settings: " + refused +
                                         "; give the same ones, start a new run in another run.directory" +
                                         (may_be_asked.empty() ? ""
                                                               : ", or say that it is meant: `assay resume " +
                                                                     config.directory + " --change " +
                                                                     may_be_asked + "=VALUE`"));
  return changes;
}

std::optional<ResumePoint> resume_point(const Request& request, const std::vector<checkpoint::DataFile>& data,
                                        const std::vector<checkpoint::PassedOver>& known) {
  checkpoint::NewestWhole found = find_resume(request.config, known);
  if (!found.path) {
    if (request.config.resume == spec::Resume::automatic && is_done(request.config.directory))
      throw UserError(
          ExitCode::usage,
          request.config.directory +
              " holds a run that is complete and was not saved (checkpoint.at_end = off): there is "
              "nothing to go on from; give another run.directory");
    return {};
  }
  ResumePoint point{
      .path = *found.path, .state = {}, .changes = {}, .passed_over = std::move(found.passed_over)};
  point.state = checkpoint::read_state(point.path);
  point.changes = refuse_other_settings(request, data, point.state, point.path);
  // Such a run loads nothing any more, which would find out.
  if (point.state.step >= request.config.steps && request.config.resume != spec::Resume::path)
    if (std::string why = checkpoint::damage_in(point.path, checkpoint::Look::every_byte); !why.empty()) {
      std::vector<checkpoint::PassedOver> more = known;
      more.push_back({point.path, std::move(why)});
      return resume_point(request, data, more);
    }
  return point;
}

}  // namespace assay::impl::run
