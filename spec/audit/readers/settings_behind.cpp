#include "spec/audit/readers/settings_behind.hpp"

#include <algorithm>

namespace assay::spec::audit {
namespace {

/// Whether the reader of `own` finds a setting in a line that it is given alone.
bool says_setting(const LineFormat& own, Line line, std::string_view text) {
  RecordBuilder builder("", own.format, {});
  line.text = text;
  builder.at(line.number, line.rank);
  own.make()->read(line, builder);
  return builder.settings_seen() > 0;
}

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
  }
  return out;
}

}  // namespace

void SettingsBehind::look(const Line& line) {
  constexpr std::size_t most_lines = 512, most_words = 8, longest = 1024;
  if (looked_ == most_lines || line.text.size() > longest) return;
  ++looked_;
  std::size_t at = 0;
  for (std::size_t word = 0; word < most_words; ++word) {
    at = line.text.find_first_of(" \t:]>", at);
    at = line.text.find_first_not_of(" \t:]>", at);
    if (at == std::string_view::npos) return;
    const std::string_view prefix = line.text.substr(0, at);
    if (prefix.find('#') != std::string_view::npos) return;  // a comment of a printed configuration
    if (!says_setting(own_, line, line.text.substr(at))) continue;
    const std::string form = without_digits(prefix);
    const auto known =
        std::find_if(found_.begin(), found_.end(), [&](const auto& one) { return one.first == form; });
    if (known != found_.end())
      ++known->second.count;
    else
      found_.push_back({form, {std::string(prefix), 1, line.number}});
    return;
  }
}

std::optional<PrefixedSettings> SettingsBehind::seen() const {
  const auto most = std::max_element(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
    return a.second.count < b.second.count;
  });
  return most == found_.end() || most->second.count < 2 ? std::nullopt : std::optional(most->second);
}

}  // namespace assay::spec::audit
