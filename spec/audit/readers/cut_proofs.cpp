#include "spec/audit/readers/cut_proofs.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "spec/audit/readers/last_part.hpp"

namespace assay::spec::audit {
namespace {

/// Whether a word holds a digit, or what printf writes for no number.
bool has_number(std::string_view word) {
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] >= '0' && word[at] <= '9') return true;
    if ((word[at] == 'n' || word[at] == 'i') &&
        (word.substr(at).starts_with("nan") || word.substr(at).starts_with("inf")))
      return true;
  }
  return false;
}

/// What lines of one kind have in common: those of their first words that hold no digit.
std::string kind_of_line(std::string_view line) {
  constexpr int words = 10;  // a launcher's prefix and a stamp have up to eight
  std::string out;
  for (int i = 0; i < words; ++i) {
    const std::string_view word = word_off(line);
    if (!has_number(word)) out.append(word) += ' ';
  }
  return out;
}

/// Those of its last words that hold no digit.
std::string tail_of_line(std::string_view line) {
  constexpr std::size_t words = 6;
  std::vector<std::string_view> all;
  while (!line.empty()) all.push_back(word_off(line));
  std::string out;
  for (std::size_t i = all.size() - std::min(words, all.size()); i < all.size(); ++i)
    if (!has_number(all[i])) out.append(all[i]) += ' ';
  return out;
}

/// The end of what names the last number of a line, and that number's digits: behind the point (-1 where it
/// has none), and from the first that is not 0.
struct LastNumber {
  std::size_t named = 0;
  std::ptrdiff_t decimals = -1, significant = 0;
  double value = 0;

  explicit LastNumber(std::string_view line) {
    const std::size_t number = line.find_last_of(" :=|") + 1;
    const std::size_t point = line.find('.', number);
    if (point != std::string_view::npos) decimals = static_cast<std::ptrdiff_t>(line.size() - point) - 1;
    for (const char c : line.substr(number))
      significant += c >= '0' && c <= '9' && (significant > 0 || c != '0');
    std::from_chars(line.data() + number, line.data() + line.size(), value);
    named = line.find_last_not_of(" \t", number == 0 ? 0 : number - 1) + 1;
  }
};

/// All words of a line, those with a number as 0, and a blank behind the last one where there is one.
std::string words_of_line(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const std::string_view word = word_off(line);
    if (!word.empty()) out.append(has_number(word) ? "0" : word);
    if (!line.empty()) out += ' ';
  }
  return out;
}

/// The last word of a line, runs of digits as 0.
std::string last_word(std::string_view line) {
  std::string out;
  for (const char c : line.substr(line.find_last_of(" \t") + 1)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
  }
  return out;
}

/// Texts of which each begins as the longest does.
class Beginnings {
 public:
  void add(const std::string& text) {
    least_ = longest_.empty() ? text.size() : std::min(least_, text.size());
    alike_ =
        alike_ && (text.size() > longest_.size() ? text.starts_with(longest_) : longest_.starts_with(text));
    if (text.size() > longest_.size()) longest_ = text;
  }
  /// They are such, and not all the same.
  bool end_apart() const { return alike_ && least_ < longest_.size(); }

 private:
  std::string longest_;
  std::size_t least_ = 0;
  bool alike_ = true;
};

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string_view word_off(std::string_view& text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  std::size_t from = 0;
  while (from < text.size() && blank(text[from])) ++from;
  std::size_t end = from;
  while (end < text.size() && !blank(text[end])) ++end;
  const std::string_view word = text.substr(from, end - from);
  text.remove_prefix(end);
  return word;
}

std::vector<SeenLine> whole_lines(std::string_view start) {
  constexpr std::size_t most = 4096;
  std::vector<SeenLine> lines;
  for (std::size_t end; lines.size() < most && (end = start.find('\n')) != std::string_view::npos;
       start.remove_prefix(end + 1)) {
    std::string_view line = start.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, width_of(line)});
  }
  return lines;
}

bool end_within(const std::vector<SeenLine>& lines, std::size_t column) {
  struct Kind {
    Beginnings words, last_words;
    int full = 0;
    bool shorter = false;
  };
  std::map<std::string, Kind> kinds;
  for (const SeenLine& line : lines) {
    Kind& kind = kinds[kind_of_line(line.text)];
    kind.shorter = kind.shorter || line.size != column;
    if (kind.shorter) continue;
    ++kind.full;
    kind.words.add(words_of_line(line.text));
    kind.last_words.add(last_word(line.text));
  }
  return std::any_of(kinds.begin(), kinds.end(), [](const auto& kind) {
    return kind.second.full >= 3 && !kind.second.shorter &&
           (kind.second.words.end_apart() || kind.second.last_words.end_apart());
  });
}

bool end_alike(const std::vector<SeenLine>& lines, const LineEnds& ends) {
  // Behind prefixes of several hosts lines of one kind differ in their first words, not in their last ones.
  std::set<std::string> all, tails;
  std::map<std::string, int> kinds;
  for (const SeenLine& line : lines) {
    if (line.size != ends.column || closes_line(line.text)) continue;
    all.insert(kind_of_line(line.text));
    tails.insert(tail_of_line(line.text));
    if (number_may_go_on(line.text)) ++kinds[kind_of_line(line.text)];
  }
  if (std::min(all.size(), tails.size()) >= 3) return true;
  const auto most = std::max_element(kinds.begin(), kinds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == kinds.end()) return false;
  struct Group {
    int full = 0;
    std::ptrdiff_t decimals = -1, significant = 0;
    std::vector<double> numbers;
    double median() {
      const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
      std::nth_element(numbers.begin(), middle, numbers.end());
      return *middle;
    }
  };
  // Whole numbers that are cut are as many times less as digits are gone; of whole ones a digit more is the
  // next.
  const auto times_less = [](Group& a, Group& b) {
    const double apart = std::log10(a.median() / b.median());
    return std::abs(apart - std::round(apart)) < 0.3 && std::abs(std::round(apart)) >= 1 &&
           std::round(apart) == static_cast<double>(a.significant - b.significant);
  };
  std::map<std::size_t, Group> groups;
  for (const SeenLine& line : lines) {
    if (line.size != ends.column || kind_of_line(line.text) != most->first) continue;
    const LastNumber last(line.text);
    ++groups[last.named].full;
    groups[last.named].decimals = last.decimals;
    groups[last.named].significant = last.significant;
    groups[last.named].numbers.push_back(std::max(last.value, 1e-9));
  }
  for (const SeenLine& line : lines)
    if (line.size < ends.column && kind_of_line(line.text) == most->first)
      groups.erase(LastNumber(line.text).named);
  for (auto one = groups.begin(); one != groups.end(); ++one)
    for (auto other = std::next(one); other != groups.end(); ++other)
      // Numbers of so many significant digits may make a few lines equally long; those that are always
      // printed to as many digits behind the point do where one grows as another shrinks.
      if ((one->second.full >= 3 && other->second.full >= 3 &&
           (one->second.decimals != other->second.decimals ||
            (one->second.decimals < 0 && times_less(one->second, other->second)))) ||
          (one->second.full + other->second.full >= 3 && one->second.decimals != other->second.decimals &&
           (one->second.significant != other->second.significant || one->second.decimals == 0 ||
            other->second.decimals == 0)))
        return true;
  return false;
}

bool end_in_sign_below(const std::vector<SeenLine>& lines, std::size_t column) {
  struct Ends {
    int signs = 0, others = 0, open = 0;
    char sign = 0;
  };
  std::map<std::string, Ends> kinds;
  for (const SeenLine& line : lines)
    if (line.size == column && number_may_go_on(line.text)) ++kinds[kind_of_line(line.text)].open;
  if (kinds.empty()) return false;
  for (const SeenLine& line : lines) {
    if (line.size >= column || line.text.empty()) continue;
    const auto kind = kinds.find(kind_of_line(line.text));
    if (kind == kinds.end()) continue;
    Ends& ends = kind->second;
    if (closes_line(line.text) && (ends.signs == 0 || ends.sign == line.text.back()))
      ends.sign = line.text.back(), ++ends.signs;
    else
      ++ends.others;
  }
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const auto& kind) { return kind.second.signs >= 3 && kind.second.others == 0; });
}

}  // namespace assay::spec::audit
