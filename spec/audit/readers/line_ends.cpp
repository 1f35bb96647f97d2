#include "spec/audit/readers/line_ends.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "spec/audit/readers/last_part.hpp"
#include "spec/audit/readers/prefix_form.hpp"

namespace assay::spec::audit {
namespace {

/// Characters of UTF-8 text.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Takes the next word off `text`; empty at its end.
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

/// The first two words, a run of digits as 0.
std::string first_words(std::string_view line) {
  constexpr std::size_t longest = 48;
  std::string out;
  for (int i = 0; i < 2; ++i) {
    for (const char c : word_off(line)) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
    }
    out += ' ';
  }
  return out.substr(0, longest);
}

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

struct SeenLine {
  std::string_view text;
  std::size_t size = 0;  ///< in characters
};

/// The whole lines of the beginning of a log.
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

/// Whether all lines of a kind, three or more, end at the column, and some of them before words, or within a
/// word, that others have: printed lines that lack some are shorter.
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

/// Whether lines of the kind that most full lines have all end at the column, wherever the name of their last
/// number ends. Printed lines whose numbers have a fixed number of digits, behind the point or in all, do
/// not: the line is as much longer as what stands before its last number.
bool end_alike(const std::vector<SeenLine>& lines, const LineEnds& ends) {
  std::map<std::string, int> kinds, of_numbers;
  for (const SeenLine& line : lines) {
    if (line.size != ends.column || closes_line(line.text)) continue;
    ++kinds[kind_of_line(line.text)];
    if (number_may_go_on(line.text)) ++of_numbers[kind_of_line(line.text)];
  }
  if (kinds.size() >= 3) return true;
  kinds = std::move(of_numbers);
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

/// Whether the digits that end `line` and those that begin `next` make a number: one point at most, and no
/// sign behind it that stamps and dates have.
bool goes_on_as_number(std::string_view line, std::string_view next) {
  constexpr std::string_view of_numbers = "0123456789.";
  const std::size_t from = line.find_last_not_of(of_numbers) + 1,
                    to = std::min(next.find_first_not_of(of_numbers), next.size());
  const std::string_view front = line.substr(from), back = next.substr(0, to);
  const auto points = std::count(front.begin(), front.end(), '.') + std::count(back.begin(), back.end(), '.');
  return points <= 1 &&
         (to == next.size() || std::string_view(":-/_").find(next[to]) == std::string_view::npos);
}

/// Whether a break between the two took no blank away: it is within a number, or before a sign that follows a
/// word at once. Lines that are broken between words have none of these.
bool breaks_within(std::string_view line, std::string_view next) {
  if (line.empty() || next.empty()) return false;
  const char last = line.back(), first = next.front();
  const auto digits = [&] { return std::min(next.find_first_not_of("0123456789"), next.size()); };
  if (last >= '0' && last <= '9') {
    if (digits() > 0) return goes_on_as_number(line, next);
    if (first == 'e') return next.size() > 2 && (next[1] == '-' || next[1] == '+') && numeral(next[2]);
    return std::string_view(".,%:)").find(first) != std::string_view::npos;
  }
  if (last == ',')
    return line.size() > 1 && line[line.size() - 2] >= '0' && line[line.size() - 2] <= '9' &&
           digits() == 3;  // "38,987"
  return ((last == '.' || last == '=') && digits() > 0) ||
         ((std::isalnum(static_cast<unsigned char>(last)) != 0) &&
          std::string_view(",:)=").find(first) != std::string_view::npos);
}

/// Whether the lines of a kind that are shorter all end in one sign that ends lines, and those that reach the
/// column in a number that may go on.
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

}  // namespace

bool LineEnds::full(std::string_view line) const {
  if (column == 0 || line.size() < column) return false;
  const std::size_t size = width_of(line);
  return size == column || (indent > 0 && size == column + indent && line.find_first_not_of(' ') >= indent);
}

bool LineEnds::goes_on(std::string_view line) const {
  return !line.empty() && std::min(line.find_first_not_of(' '), line.size()) >= indent &&
         !std::binary_search(starts.begin(), starts.end(), first_words(line));
}

LineEnds line_ends(std::string_view start, bool rows) {
  constexpr int fewest = 3;
  const std::vector<SeenLine> lines = whole_lines(start);
  LineEnds ends;
  for (const SeenLine& line : lines)
    if (!line.text.starts_with("  ")) ends.column = std::max(ends.column, line.size);
  // Text that is broken between words has more lines that nearly reach the column than such as do; what
  // follows one that does may be its rest, and of any length.
  constexpr std::size_t word = 8, narrowest = 16;
  int full = 0, nearly = 0, nearly_begun = 0;
  bool behind_full_line = false;
  for (const SeenLine& line : lines) {
    const bool is_full = line.size == ends.column;
    full += is_full;
    const bool is_nearly = line.size < ends.column && line.size + word >= ends.column;
    nearly += is_nearly;
    nearly_begun += is_nearly && !behind_full_line;
    behind_full_line = line.size >= ends.column;
  }
  if (ends.column < narrowest) return {};
  if (full < fewest) {
    const bool longest = std::all_of(lines.begin(), lines.end(),
                                     [&](const SeenLine& line) { return line.size <= ends.column; });
    return longest && end_in_sign_below(lines, ends.column) ? ends : LineEnds();
  }
  // Rests of lines may be indented, and longer by as much; no other line is longer.
  std::set<std::string> starts;
  std::size_t indent = std::string_view::npos;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool behind_full = i > 0 && lines[i - 1].size >= ends.column;
    if (lines[i].size > ends.column && !behind_full) return {};
    if (!behind_full) starts.insert(first_words(lines[i].text));
  }
  ends.starts.assign(starts.begin(), starts.end());
  int going_on = 0, within = 0, beginning = 0, rests = 0,  // of those that go on: not full themselves
      indented = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i - 1].size < ends.column) continue;
    rests += lines[i].size < ends.column && ends.goes_on(lines[i].text);
    if (closes_line(lines[i - 1].text)) continue;
    if (!ends.goes_on(lines[i].text)) {
      beginning += !ends.goes_on(lines[i - 1].text);  // a rest may be as long as the column
      continue;
    }
    ++going_on;
    within += breaks_within(
        lines[i - 1].text,
        lines[i].text.substr(std::min(lines[i].text.size(), lines[i].text.find_first_not_of(' '))));
    if (const std::size_t blanks = std::min(lines[i].text.find_first_not_of(' '), lines[i].text.size());
        blanks > 1)
      indent = std::min(indent, blanks), ++indented;
  }
  // A line that happens to end at the column has none behind it.
  ends.indent = indented > 0 && 4 * indented >= 3 * going_on ? indent : 0;
  // A line that is just as long as the column is has no rest: few are.
  const bool hard = full >= 8 && full >= 8 * nearly_begun && full >= 2 * nearly;
  ends.wrapped = !rows && going_on >= fewest && going_on >= 4 * beginning &&
                 (hard ? within >= 1 : within >= 2 && 16 * within >= going_on);
  const bool cut = beginning >= going_on || (rests <= 1 && going_on >= 8);
  if (!ends.wrapped && !(cut && full >= 2 * nearly && end_alike(lines, ends)) &&
      !(cut && end_within(lines, ends.column)) && !end_in_sign_below(lines, ends.column))
    return {};
  return ends;
}

}  // namespace assay::spec::audit
