#pragma once
// The words of --map and --set: pairs, names, units.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::spec::audit {

/// Errors: UserError(usage), "OPTION: MESSAGE".
[[noreturn]] void refuse_option(const std::string& option, const std::string& message);

/// "a=b,c=d" in pairs. Errors: UserError(usage) for a name given twice, and a part without "=".
std::vector<std::pair<std::string, std::string>> option_pairs(const std::string& option,
                                                              const std::string& text);

/// "; did you mean ...?", or all that are known where none is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);

template <class Enum>
std::vector<std::string> all_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(to_string(static_cast<Enum>(i)));
  return names;
}

/// What a unit measures; a factor ("k") goes with any count or rate.
enum class Measures { time, share, factor, bytes, flops };

struct KnownUnit {
  std::string_view name;
  double size;
  Measures measures;
};

/// nullptr: unknown.
const KnownUnit* unit_named(std::string_view name);
/// All whose kind is among `kinds`.
std::vector<std::string> unit_names(const std::vector<Measures>& kinds);

}  // namespace assay::spec::audit
