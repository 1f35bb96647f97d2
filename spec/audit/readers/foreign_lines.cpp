#include "spec/audit/readers/foreign_lines.hpp"

#include <algorithm>
#include <bit>

#include "spec/audit/readers/line_prefix.hpp"

namespace assay::spec::audit {

namespace {

/// Words of all trainers' step lines.
struct WordsOfSteps {
  std::vector<std::string_view> all;
  std::vector<std::size_t> format_of;  ///< of each word, in line_formats()
  Words words;
};
const WordsOfSteps& words_of_steps() {
  static const WordsOfSteps known = [] {
    std::vector<std::string_view> words;
    std::vector<std::size_t> format_of;
    for (std::size_t i = 0; i < line_formats().size(); ++i)
      for (const std::string_view word : line_formats()[i].of_steps) {
        words.push_back(word);
        format_of.push_back(i);
      }
    return WordsOfSteps{words, format_of, Words(words)};
  }();
  return known;
}

/// Where the first step of `other` begins in `text`, one of whose words is `word`; npos: there is none. A
/// word that says nothing a few times says nothing later on: a line may be 1 MiB of them.
std::size_t step_of(const LineFormat& other, std::string_view word, std::string_view text) {
  constexpr std::size_t none = std::string_view::npos, most_before_word = 16;  // "{'grad_norm': 1, 'loss'"
  constexpr std::size_t longest_step = 4096;
  int left = 4;
  for (std::size_t at = 0; left-- > 0 && (at = text.find(word, at)) != none; at += word.size())
    for (std::size_t begin = at + 1; begin-- > at - std::min(at, most_before_word);) {
      const std::string_view step = text.substr(begin, longest_step);
      if (other.recognises(step)) return begin + before_own(other, step);
    }
  return none;
}

}  // namespace

void ForeignLook::look(const Line& line) {
  if (!own_) return;
  const WordsOfSteps& known = words_of_steps();
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

std::size_t ForeignLook::begins_in(std::string_view text) const {
  std::size_t first = std::string_view::npos;
  if (!own_) return first;
  const WordsOfSteps& known = words_of_steps();
  for (std::uint64_t found = known.words.in(text); found != 0; found &= found - 1) {
    const auto word = static_cast<std::size_t>(std::countr_zero(found));
    const LineFormat& other = line_formats()[known.format_of[word]];
    if (&other == own_) continue;
    const std::size_t begin = step_of(other, known.all[word], text);
    if (begin < first && !own_->recognises(text.substr(begin))) first = begin;
  }
  return first;
}

}  // namespace assay::spec::audit
