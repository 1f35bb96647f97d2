#include "spec/audit/readers/foreign_lines.hpp"

#include <algorithm>
#include <bit>

namespace assay::spec::audit {

namespace {

/// Words of all trainers' step lines.
struct WordsOfSteps {
  std::vector<std::size_t> format_of;  ///< of each word, in line_formats()
  Words words;
};
WordsOfSteps words_of_steps() {
  std::vector<std::string_view> words;
  std::vector<std::size_t> format_of;
  for (std::size_t i = 0; i < line_formats().size(); ++i)
    for (const std::string_view word : line_formats()[i].of_steps) {
      words.push_back(word);
      format_of.push_back(i);
    }
  return {format_of, Words(words)};
}

}  // namespace

void ForeignLook::look(const Line& line) {
  static const WordsOfSteps known = words_of_steps();
  if (!own_) return;
  for (std::uint64_t found = known.words.in(line.text); found != 0; found &= found - 1) {
    const LineFormat& other =
        line_formats()[known.format_of[static_cast<std::size_t>(std::countr_zero(found))]];
    if (&other == own_ || !other.recognises(line.text)) continue;
    if (own_->recognises(line.text)) return;
    const auto of_other = std::find_if(
        seen_.begin(), seen_.end(), [&](const ForeignLines& one) { return one.format == other.format.name; });
    if (of_other != seen_.end())
      ++of_other->count;
    else
      seen_.push_back({other.format.name, 1, line.number});
    return;
  }
}

}  // namespace assay::spec::audit
