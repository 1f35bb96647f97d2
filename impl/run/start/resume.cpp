#include "impl/run/start/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/differences.hpp"
#include "spec/record/event.hpp"
#include "spec/record/read.hpp"
#include "spec/text/file.hpp"
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
  const auto events = spec::record::starts_and_ends((fs::path(directory) / "run.jsonl").string());
  const auto* end = events.empty() ? nullptr : std::get_if<spec::record::RunEnd>(&events.back());
  return end && end->reason == spec::record::EndReason::done;
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

namespace {
using checkpoint::DataFile;
using spec::OnResume;

std::vector<DataFile> those_of(const std::vector<DataFile>& files, std::string_view of) {
  std::vector<DataFile> out;
  std::ranges::copy_if(files, std::back_inserter(out), [&](const DataFile& file) { return file.of == of; });
  return out;
}
std::vector<DataFile> those_of(const std::optional<std::vector<DataFile>>& files, std::string_view of) {
  return files ? those_of(*files, of) : std::vector<DataFile>();
}

std::string shown(const std::vector<DataFile>& files, std::size_t i) {
  if (i >= files.size()) return "no file";
  return spec::quote(files[i].path) + " (" + spec::grouped(files[i].bytes) + " bytes, sample " +
         files[i].sample + (files[i].format.empty() ? "" : ", " + files[i].format) + ")";
}

/// The first file that holds something else than the one at its place did; empty where all hold the same.
std::string other_file(const std::vector<DataFile>& now, const std::vector<DataFile>& then) {
  std::size_t i = 0;
  while (i < now.size() && i < then.size() && now[i].same_content(then[i])) ++i;
  if (i == now.size() && i == then.size()) return "";
  return "file " + std::to_string(i + 1) + " is " + shown(now, i) + ", was " + shown(then, i);
}

/// What a setting names, compared by what it holds.
struct Content {
  std::string key;
  bool asked = false;                   ///< another content was asked for by name
  bool of_state = false;                ///< weights and moments are of it: nobody can ask for another
  bool known = false;                   ///< on both sides; else the settings are compared as texts
  bool typed = false;                   ///< likewise, how the files are read
  std::vector<std::string> other = {};  ///< what differs, each as it is refused
  std::vector<spec::record::ChangedSetting> changes = {};  ///< likewise, as the record names it
};

/// Whether the setting was asked to change, in its own terms or in others.
bool asks(const Request& request, std::string_view name) {
  return std::ranges::any_of(spec::keys(), [&](const spec::Key& key) {
    return (key.name == name || key.alternative == name) && request.asks(key.name);
  });
}
/// Whether other files were asked for, or that they are read otherwise.
bool asks_for_content(const Request& request, std::string_view name) {
  return asks(request, name) || std::ranges::any_of(spec::keys(), [&](const spec::Key& key) {
           return key.reads == name && request.asks(key.name);
         });
}

Content content_of_tokens(const Request& request, const Identity& now, const checkpoint::State& then,
                          const spec::RunConfig& before) {
  Content out{.key = DataFile::training, .asked = asks_for_content(request, DataFile::training)};
  out.known = then.data.has_value();
  const auto here = those_of(now.files, DataFile::training), there = those_of(then.data, DataFile::training);
  const auto has_type = [](const DataFile& file) { return !file.format.empty(); };
  out.typed = std::ranges::all_of(here, has_type) && std::ranges::all_of(there, has_type);
  // Earlier versions said nothing of the grammar's text.
  const bool of_grammar = request.config.data_paths.empty() && before.data_paths.empty();
  const std::string other = !out.known || (of_grammar && there.empty()) ? "" : other_file(here, there);
  if (other.empty()) return out;
  out.other = {"the content of data.paths: " + other};
  // Files of the same names that hold other tokens; other names are a setting that differs.
  if (request.config.data_paths == before.data_paths)
    out.changes = {{.name = "data.paths", .before = before.data_paths, .now = before.data_paths}};
  return out;
}

Content content_of_model(const Request& request, const Identity& now,
                         const std::optional<spec::ModelSpec>& then) {
  Content out{.key = "model.name", .asked = asks(request, "model.name"), .of_state = true};
  out.known = now.model && then;
  if (!out.known) return out;
  out.of_state = !spec::same_parameters(*now.model, *then);
  for (const spec::ModelDifference& each : spec::differences(*now.model, *then)) {
    out.other.push_back(difference_text(each, request.config.model));
    out.changes.push_back({.name = "model." + each.field, .before = each.before, .now = each.now});
  }
  return out;
}

Content content_of_weights(const Request& request, const Identity& now, const checkpoint::State& then) {
  const auto here = those_of(now.files, DataFile::weights), there = those_of(then.data, DataFile::weights);
  Content out{.key = DataFile::weights, .asked = asks(request, DataFile::weights), .of_state = true};
  out.known = !request.goes_on && !here.empty() && !there.empty();
  if (const std::string other = out.known ? other_file(here, there) : ""; !other.empty())
    out.other = {"the content of model.weights: " + other};
  return out;
}

/// What is refused, put together.
class Refusals {
 public:
  void add(const std::string& text) { text_ += (text_.empty() ? "" : "; ") + text; }
  void add(const std::string& name, const std::string& text, bool of_state, bool asked) {
    add(text + (of_state && asked ? ", and weights and moments are of that" : ""));
    if (!of_state && may_be_asked_.empty()) may_be_asked_ = name;
  }
  void raise(const std::string& path, const std::string& directory) const {
    if (text_.empty()) return;
    throw UserError(ExitCode::usage,
                    path + " was saved by a run with other settings: " + text_ +
                        "; give the same ones, start a new run in another run.directory" +
                        (may_be_asked_.empty() ? ""
                                               : ", or say that it is meant: `assay resume " + directory +
                                                     " --change " + may_be_asked_ + "=VALUE`"));
  }

 private:
  std::string text_, may_be_asked_;
};
}  // namespace

std::string difference_text(const spec::ModelDifference& difference, const std::string& model) {
  return difference.field + " of model " + model + " is " + spec::shown(difference.now) + ", was " +
         spec::shown(difference.before);
}

spec::RunConfig ResumePoint::settings() const {
  return spec::load_dump(state.config, path, {}, state.derived);
}

std::optional<spec::ModelSpec> ResumePoint::model() const {
  if (state.model.empty()) return {};
  return spec::model_from_toml(state.model, path);
}

ResumeChanges refuse_other_settings(const Request& request, const Identity& now,
                                    const checkpoint::State& then, const std::string& path) {
  const ResumePoint point{.path = path, .state = then, .changes = {}, .passed_over = {}};
  const spec::RunConfig &config = request.config, before = point.settings();
  const spec::RunConfig whole = spec::with_whole_paths(config), whole_before = spec::with_whole_paths(before);
  spec::RunConfig followed = config;
  spec::follow(followed, before);
  ResumeChanges changes{.extended = then.step >= before.steps && config.steps > before.steps, .settings = {}};
  Refusals refusals;
  const Content contents[] = {content_of_model(request, now, point.model()),
                              content_of_weights(request, now, then),
                              content_of_tokens(request, now, then, before)};
  for (const spec::Key& key : spec::keys()) {
    const spec::Value value = key.get(config), was = key.get(before);
    const OnResume meaning = key.on_resume(config);
    if (key.get(whole) == key.get(whole_before) || meaning == OnResume::output) continue;
    const auto change = [&](std::optional<bool> asked) {
      changes.settings.push_back({.name = key.name, .before = was, .now = value, .asked = asked});
    };
    bool of_state = meaning == OnResume::state;
    bool goes_on = meaning == OnResume::rounding || (meaning == OnResume::length && changes.extended);
    if (meaning == OnResume::content) {
      const Content& content =
          *std::ranges::find(contents, key.reads.empty() ? key.name : key.reads, &Content::key);
      of_state = content.of_state;
      // Where nothing says how files were read, the type may be left out, and not be another.
      const spec::Value left_out = std::string();
      const bool same_type = key.reads.empty() || content.typed || value == left_out || was == left_out;
      goes_on = content.known && content.other.empty() && same_type;
    }
    const bool derived =
        spec::is_derived(key, config) && spec::is_derived(key, before) && value == key.get(followed);
    if (goes_on)
      change({});
    else if (derived)
      change(request.changes.empty() ? std::nullopt : std::optional(true));
    else if (asks(request, key.name) && !of_state)
      change(true);
    else
      refusals.add(key.name, key.name + " is " + spec::shown(value) + ", was " + spec::shown(was), of_state,
                   asks(request, key.name));
  }
  for (const Content& content : contents) {
    if (content.asked && !content.of_state) {
      for (spec::record::ChangedSetting each : content.changes) {
        each.asked = true;
        changes.settings.push_back(std::move(each));
      }
    } else {
      for (const std::string& text : content.other)
        refusals.add(content.key, text, content.of_state, content.asked);
    }
  }
  // The steps that are done had another batch, which says where their samples end.
  if (config.sequences != before.sequences && request.asks("batch.sequences") &&
      !request.asks("batch.ramp")) {
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
  if (request.asks("batch.ramp") && spec::sequences_before(spec::global_batch(config), then.step) !=
                                        spec::sequences_before(spec::global_batch(before), then.step))
    refusals.add(
        "batch.ramp gives the " + spec::grouped(then.step) +
        " steps that are done another number of sequences, so that samples would be left out or read twice: "
        "begin it with the stages that they had");
  refusals.raise(path, config.directory);
  return changes;
}

std::optional<ResumePoint> resume_point(const Request& request,
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
  point.end_is_done = request.config.resume != spec::Resume::automatic || is_done(request.config.directory);
  point.state = checkpoint::read_state(point.path);
  return point;
}

void compare(const Request& request, const Identity& now, ResumePoint& point) {
  point.changes = refuse_other_settings(request, now, point.state, point.path);
  // Such a run loads nothing any more, which would find out.
  if (point.state.step < request.config.steps || request.config.resume == spec::Resume::path) return;
  std::string why = checkpoint::damage_in(point.path, checkpoint::Look::every_byte);
  if (why.empty()) return;
  std::vector<checkpoint::PassedOver> known = point.passed_over;
  known.push_back({point.path, std::move(why)});
  point = *resume_point(request, known);  // or none is whole, an error
  compare(request, now, point);
}

namespace {
using spec::OfValidation;

/// What is to be known of losses on a validation set that settings, or other tokens that it is held out of,
/// make another one than before; empty where they do not.
std::string other_validation(const spec::RunConfig& now, const spec::RunConfig& before, bool other_tokens) {
  if (!spec::validates(now)) return "";
  const bool held_out = now.eval_paths.empty(), was_held_out = before.eval_paths.empty();
  std::string changes;
  bool other_samples = held_out && (!was_held_out || other_tokens);
  for (const spec::Key& key : spec::keys()) {
    if (key.validation == OfValidation::nothing) continue;
    const spec::Value here = key.get(now), was = key.get(before);
    if (here == was || (!held_out && key.validation == OfValidation::held_out)) continue;
    changes +=
        (changes.empty() ? "" : ", ") + key.name + " is " + spec::shown(here) + ", was " + spec::shown(was);
    other_samples = other_samples || (held_out && key.validation != OfValidation::evaluated);
  }
  if (changes.empty() && !other_samples && held_out == was_held_out) return "";
  std::string text = "the validation set is another one" + (changes.empty() ? "" : " (" + changes + ")");
  if (spec::validates(before)) text += "; losses on it are not to be compared with those before";
  if (other_samples) text += "; it is held out of the training data, and the run may have been trained on it";
  return text;
}
}  // namespace

std::vector<std::string> other_files(const Request& request, const Identity& now, const ResumePoint& point) {
  std::vector<std::string> lines;
  const auto add = [&](const char* of, const char* and_so) {
    const auto here = those_of(now.files, of), there = those_of(point.state.data, of);
    if (here.empty() || there.empty()) return;
    if (const std::string other = other_file(here, there); !other.empty())
      lines.push_back("the content of " + std::string(of) + ": " + other + and_so);
  };
  add(DataFile::validation, "; losses on it are not to be compared with those before");
  const auto tokens = those_of(now.files, DataFile::training),
             before = those_of(point.state.data, DataFile::training);
  const bool other_tokens = !tokens.empty() && !before.empty() && !other_file(tokens, before).empty();
  if (std::string text = other_validation(request.config, point.settings(), other_tokens); !text.empty())
    lines.push_back(std::move(text));
  add(DataFile::tokenizer, "; the run's tokens are of the one before");
  if (request.goes_on) add(DataFile::weights, "; the run goes on as it began");
  return lines;
}

std::vector<DataFile> files_of_next(const Identity& now, const ResumePoint& point) {
  const auto& then = point.state.data;
  std::vector<DataFile> out = those_of(now.files, DataFile::training);
  const bool other_tokens = !other_file(out, those_of(then, DataFile::training)).empty();
  const auto add = [&](std::vector<DataFile> files) { std::ranges::move(files, std::back_inserter(out)); };
  add(those_of(now.files, DataFile::validation));
  add(those_of(then, DataFile::weights));
  const auto tokenizer = those_of(then, DataFile::tokenizer);
  add(other_tokens || tokenizer.empty() ? those_of(now.files, DataFile::tokenizer) : tokenizer);
  return out;
}

}  // namespace assay::impl::run
