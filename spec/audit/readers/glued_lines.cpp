#include "spec/audit/readers/glued_lines.hpp"

#include <algorithm>

#include "spec/audit/readers/rank_prefix.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::size_t fewest_letters = 4, longest_prefix_of_second = 256;

bool of_number(char c) { return c >= '0' && c <= '9'; }

/// Bytes of the prefix that `text` ends with, by `length_at`: what it gives of text that begins with one.
template <class Length>
std::size_t at_end(std::string_view text, const Length& length_at) {
  for (std::size_t size = std::min(text.size(), longest_prefix_of_second); size > 0; --size)
    if (length_at(text.substr(text.size() - size)) == size) return size;
  return 0;
}

}  // namespace

StepBeginning::StepBeginning(const LineFormat& format, std::string_view step_line) {
  const std::size_t before = before_own(format, step_line);
  before_ = PrefixForm(step_line.substr(0, before));
  if (!format.step_begins.empty()) {
    words_ = format.step_begins;
    return;
  }
  std::string_view own = step_line.substr(before);
  std::size_t end = 0;
  while (end < own.size() && !of_number(own[end])) ++end;
  while (end > 0 && own[end - 1] == ' ') --end;
  if (end >= fewest_letters && end < own.size()) words_ = own.substr(0, end);
}

StepBeginning::Second StepBeginning::second(std::string_view text) const {
  constexpr std::size_t none = std::string_view::npos;
  // Nearly every line has the words once.
  const std::size_t once = words_.empty() ? none : text.find(words_);
  if (once == none || text.find(words_, once + words_.size()) == none) return {};
  const auto next = [&](std::size_t from) {
    for (std::size_t at = from; (at = text.find(words_, at)) != none; at += words_.size()) {
      const std::size_t number = text.find_first_not_of(' ', at + words_.size());
      if (number != none && of_number(text[number])) return at;
    }
    return none;
  };
  // The first may be cut before its number.
  const std::size_t first = text.find(words_, before_.length(text)),
                    own = first == none ? none : next(first + words_.size());
  if (own == none) return {};
  Second out;
  const std::size_t from = first + words_.size();
  std::string_view front = text.substr(from, own - from);
  while (front.ends_with(' ')) front.remove_suffix(1);
  const std::size_t prefix = at_end(front, [&](std::string_view tail) { return before_.length(tail); });
  out.begin = prefix > 0 ? from + front.size() - prefix : own;
  front = text.substr(from, out.begin - from);
  const std::size_t size = at_end(front, [&](std::string_view tail) {
    // "15: " is what is left of "iter 15: ", too.
    std::string_view rest = tail.starts_with('[') ? tail : std::string_view();
    const int rank = take_rank(rest);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rank >= 0 && rest.empty()) out.rank = rank;
    return rank >= 0 ? tail.size() - rest.size() : 0;
  });
  out.end_of_first = out.begin - size;
  return out;
}

}  // namespace assay::spec::audit
