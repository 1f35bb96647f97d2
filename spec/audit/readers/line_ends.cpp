#include "spec/audit/readers/line_ends.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "spec/audit/readers/cut_proofs.hpp"
#include "spec/audit/readers/last_part.hpp"
#include "spec/audit/readers/prefix_form.hpp"

namespace assay::spec::audit {
namespace {

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
