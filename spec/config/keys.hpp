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
#include "spec/config/value.hpp"

namespace assay::spec {

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

/// The name and value of every setting of `config`, in the order of keys().
std::vector<std::pair<std::string, Value>> settings(const RunConfig& config);

}  // namespace assay::spec
