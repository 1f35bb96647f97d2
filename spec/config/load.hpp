#pragma once
// Settings from a recipe and the command line: defaults < recipe < key=value (spec/config/config.md).
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/config/run_config.hpp"
#include "spec/text/faults.hpp"

namespace assay::spec {

/// What could be read of a recipe and a command line, and all that is wrong with them.
struct Loaded {
  RunConfig config;  ///< a setting that is wrong is at its default, and stated
  Faults faults;

  /// Calls `check`, a constraint of settings, and keeps what it throws: behind the place of the first setting
  /// that its message names, where a recipe gave it, and not where one that it names is wrong by itself.
  void gather(const std::function<void()>& check);

  std::set<std::string> wrong = {};                ///< settings whose values are not what was meant
  std::map<std::string, std::string> places = {};  ///< of those that a recipe gave: "recipe.toml:3:9"
};

/// Reads the recipe file `recipe` (empty: none), applies `overrides` ("train.steps=100", a list as
/// "a.bin,b.bin" or as a TOML array), lets absent settings follow from others and checks the result with
/// check(config) and check_reached(config). Into the faults: the file cannot be read, TOML syntax (then it is
/// the only one), unknown keys (with the nearest one), wrong types, values out of range, constraints between
/// settings. Messages about one setting start with file:line:column or quote the argument; behind it stands
/// the label of the constraint.
Loaded load_all(const std::string& recipe, const std::vector<std::string>& overrides);

/// The settings alone. Errors: UserError(usage), the faults of load_all.
RunConfig load(const std::string& recipe, const std::vector<std::string>& overrides);

/// The same for recipe text; `origin` stands for the file in messages.
RunConfig load_text(std::string_view toml, const std::string& origin,
                    const std::vector<std::string>& overrides);

/// The settings that this or an earlier version wrote by dump_toml, as into a checkpoint. Removed settings
/// (removed_keys), which load and load_text refuse, are skipped, and check_reached is left out unless
/// `overrides` name what it is about. `derived`: of the dump's settings those that followed from others
/// (derived_settings), and follow again where `overrides` change what they follow from; nothing, of earlier
/// versions: those that have the value which follows. Errors of `overrides` also name what the run states.
RunConfig load_dump(std::string_view toml, const std::string& origin,
                    const std::vector<std::string>& overrides = {},
                    const std::optional<std::vector<std::string>>& derived = {});

/// Whether `name`, as other trainers or launchers have it ("gpus", "nproc_per_node"), is the number of ranks.
bool counts_ranks(const std::string& name);

/// The setting whose last word is that of `name`, or for which other trainers have it: "parallel.steps" finds
/// train.steps, "tp" and "parallel.tensor_parallel_size" find parallel.tensor.
std::optional<std::string> key_called(const std::string& name);

/// The setting that an unknown name most likely meant, key_called's before one that is spelt alike:
/// "learning_rate" and "lr" find optimizer.learning_rate, "stesp" finds train.steps. Nothing when none is
/// near.
std::optional<std::string> nearest_key(const std::string& name);

}  // namespace assay::spec
