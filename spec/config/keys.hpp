#pragma once
// The one table of settings: name, type, unit, range, meaning and field of RunConfig. Loading, checks,
// --dump-config, shell completion, docs/configuration.md and the run record all read it.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/config/run_config.hpp"
#include "spec/text/value.hpp"

namespace assay::spec {

/// What it means that a setting differs from that of the run that goes on (spec/checkpoint/checkpoint.md,
/// "Resuming").
enum class OnResume {
  identity,  ///< it decides what is computed: refused unless asked for by name
  length,    ///< likewise; but a complete run may be given more steps, and with them another schedule
  state,     ///< weights and moments are of it: refused, whoever asks
  content,   ///< it names files, or says how they are read: what they hold is compared
  rounding,  ///< the same sums by another machine or in another order: goes on, the record names it
  output     ///< no step depends on it
};
std::string_view to_string(OnResume meaning);  ///< "identity"

/// What a setting decides of the validation set.
enum class OfValidation {
  nothing,
  held_out,  ///< which samples of the data are held out
  samples,   ///< what a sample is, held out or of files
  evaluated  ///< which of its samples are evaluated
};

/// A usual value of a setting that no default suits, and what to say of it.
struct Usual {
  std::string value, advice;
};

struct Key {
  std::string name;  ///< dotted, e.g. "batch.sequences"
  KeyType type = KeyType::text;
  std::string unit;                  ///< "[tokens]"; empty: dimensionless or text
  std::string range;                 ///< ">= 1", "(0, 1)"; empty: any
  std::vector<std::string> choices;  ///< of KeyType::choice
  std::string meaning;               ///< one sentence without the final stop
  std::string derived;               ///< how an absent value follows from other settings; empty: it does not
  std::string condition;             ///< when the setting is read, e.g. "schedule.kind is wsd"; empty: always

  std::function<Value(const RunConfig&)> get;
  /// `value` holds the alternative that belongs to `type`. Errors: SpecError config_c1 outside the range.
  std::function<void(RunConfig&, const Value&)> set;
  std::function<bool(const RunConfig&)> is_read = [](const RunConfig&) { return true; };
  std::optional<Value> neutral = {};  ///< asks for nothing, so that it is no mistake where it is not read
  std::function<OnResume(const RunConfig&)> on_resume = [](const RunConfig&) { return OnResume::identity; };
  /// What an absent value is, from the other settings; nothing where it is the default.
  std::function<std::optional<Value>(const RunConfig&)> follows = [](const RunConfig&) {
    return std::optional<Value>();
  };
  bool path = false;                    ///< names files or folders
  std::vector<std::string> words = {};  ///< of a path: values that are none
  std::string alternative = {};         ///< name of the setting that says the same in other terms
  std::string reads = {};               ///< of OnResume::content: the setting whose files it says how to read
  OfValidation validation = OfValidation::nothing;
  bool settled = false;   ///< the start of a run replaces "auto" by what all ranks then compute with
  bool of_host = false;   ///< each rank may have its own
  std::string no_change;  ///< why `assay resume --change` refuses it; empty: it does not
  /// What to say where a run of another model than the demo's does not state it; nothing where it need not.
  /// `own`: the model is a file, a folder, or starts from weights.
  std::function<std::optional<Usual>(const RunConfig&, bool own)> to_state = {};
};

/// All keys, grouped by their first word, in the order of the documentation.
const std::vector<Key>& keys();

/// The key of that name, or nullptr.
const Key* find_key(std::string_view name);

/// A setting that earlier versions had.
struct RemovedKey {
  std::string_view name;
  std::string_view reason;  ///< why it is gone, as the end of a sentence
};
/// All of them.
std::span<const RemovedKey> removed_keys();
/// The removed key of that name, or nullptr.
const RemovedKey* find_removed_key(std::string_view name);

/// Whether the setting's value follows from others: it does not where `config` states it.
bool is_derived(const Key& key, const RunConfig& config);
/// Gives the settings that `config` does not state what follows from the others.
void follow(RunConfig& config);
/// The same for a run that goes on, of settings that it has to have: what neither states keeps the value of
/// `then`, also where another version would derive another, unless what it follows from has changed.
void follow(RunConfig& config, const RunConfig& then);
/// Names of the settings whose values follow from others.
std::vector<std::string> derived_settings(const RunConfig& config);

/// `path` as it means the same in any working directory. Links on the way stay what they are. It stays as it
/// is where the working directory is gone, or has a name that no text can hold.
std::string whole_path(const std::string& path);
/// The same settings with whole paths.
RunConfig with_whole_paths(RunConfig config);

/// The name and value of every setting of `config`, in the order of keys().
std::vector<std::pair<std::string, Value>> settings(const RunConfig& config);

}  // namespace assay::spec
