#pragma once
// Command-line arguments of one verb: options, values, everything else in order.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spec/config/run_config.hpp"

namespace assay::impl::cli {

/// One option of a verb. An option with a `value` takes it as "--seq 128" or "--seq=128".
struct Option {
  std::string name;     ///< without dashes, "json"
  std::string letter;   ///< short form without the dash, "o"; empty: none
  std::string value;    ///< name of the value in the help, "T"; empty: a flag
  std::string meaning;  ///< one line
  bool list = false;    ///< it may be given again, with a further value
};

struct Arguments {
  std::map<std::string, std::vector<std::string>> options;  ///< given ones by name; flags have no value
  std::vector<std::string> positional;

  bool has(const std::string& name) const { return options.contains(name); }
  /// The option's values, in their order; none when it was not given.
  std::vector<std::string> values(const std::string& name) const;
  /// The option's value, or `otherwise` when it was not given. Of several: joined by commas.
  std::string value(const std::string& name, const std::string& otherwise) const;
  /// The options as words of a command line: "--seq=128".
  std::vector<std::string> words() const;
  /// The option's value as an integer >= 1 (spec::whole_number), or `otherwise` when it was not given.
  /// Errors: UserError(usage) for anything else.
  std::int64_t positive(const std::string& name, std::int64_t otherwise) const;
};

/// What --dtype and --device say, in the words of the settings compute.dtype and compute.device: so are the
/// errors, UserError(usage). Not given, the settings' defaults.
spec::RunConfig computing(const Arguments& arguments);

/// Splits `words` by the verb's `options`; "--" ends the options. `verb` is quoted in errors.
/// Errors: UserError(usage): unknown option (with the nearest), missing or superfluous value, an option that
/// is no list given twice with different values.
Arguments parse(const std::vector<std::string>& words, const std::vector<Option>& options,
                const std::string& verb);

/// What of `words` is clear although `parse` refuses them: options of the verb; every other word counts as an
/// operand.
Arguments clear_ones(const std::vector<std::string>& words, const std::vector<Option>& options);

/// Files and folders that a verb reads and compares. Errors: UserError(usage), one of them is given twice, by
/// whatever path; a run's folder and the run.jsonl in it are the same.
void refuse_repeats(const std::vector<std::string>& paths);

}  // namespace assay::impl::cli
