#include "spec/audit/readers/log_shape.hpp"

#include <algorithm>
#include <cctype>

#include "spec/audit/readers/json_scan.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit {
namespace {

[[noreturn]] void not_text(const std::string& origin, const std::string& message) {
  throw UserError(ExitCode::bad_data, origin + ": " + message);
}

struct NoEvents {
  void begin_object() {}
  void end_object() {}
  void begin_array() {}
  void end_array() {}
  void key(std::string_view) {}
  void text(std::string_view) {}
  void number(std::string_view) {}
  void word(std::string_view) {}
};

bool whole_json(std::string_view text) {
  NoEvents events;
  MemoryBytes bytes(text);
  JsonScan scan(bytes, events);
  return scan.value() && (scan.blanks(), bytes.peek() < 0);
}

/// A line of our own record, as we or another writer of JSON put it.
bool names_event(std::string_view text) {
  return text.starts_with("{\"event\":") || text.starts_with("{\"event\" :") ||
         text.starts_with("{ \"event\"");
}

/// Whether some member is a list of objects.
bool holds_objects(std::string_view text) {
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1))
    if (const std::size_t behind = text.find_first_not_of(" \t\r", at + 1);
        behind != std::string_view::npos && text[behind] == '{')
      return true;
  return false;
}

/// Whether a line of a document ends where more must follow.
bool opens(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last != std::string_view::npos &&
         std::string_view("[{,:").find(line[last]) != std::string_view::npos;
}

}  // namespace

bool is_fence(std::string_view line) {
  if (!line.starts_with("```")) return false;
  line.remove_prefix(3);
  return line.size() <= 20 && std::all_of(line.begin(), line.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ' || c == '\r';
         });
}

bool is_elision(std::string_view line) {
  constexpr std::size_t longest = 64, most_letters = 16;  // "output truncated" has 15
  if (line.size() > longest) return false;
  std::size_t letters = 0;
  for (const char c : line)
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z' && ++letters == most_letters) return false;
  // "13:<snip>", as grep -n numbers it.
  const std::size_t number = line.find_first_not_of("0123456789");
  if (number != std::string_view::npos && number > 0 && (line[number] == ':' || line[number] == '-'))
    line.remove_prefix(number + 1);
  const auto strip = [&](std::string_view bytes) {
    const std::size_t from = std::min(line.find_first_not_of(bytes), line.size());
    line = line.substr(from, line.find_last_not_of(bytes) + 1 - from);
  };
  strip(" \t\r");
  const std::size_t bare = line.size();
  strip(" \t\r[](){}<>*#|-:/~=`_");
  if (line.empty()) return false;
  const bool marked = line.size() < bare;
  // What is left beside dots: a word, and how many lines.
  std::string word;
  std::size_t dots = 0, digits = 0;
  constexpr std::string_view ellipsis = "\xe2\x80\xa6", upright = "\xe2\x8b\xae", midway = "\xe2\x8b\xaf";
  for (; !line.empty(); line.remove_prefix(1)) {
    const auto byte = static_cast<unsigned char>(line[0]);
    if (line.starts_with(ellipsis) || line.starts_with(upright) || line.starts_with(midway)) {
      dots += 3;
      line.remove_prefix(ellipsis.size() - 1);
    } else if (byte == '.') {
      ++dots;
    } else if (std::isdigit(byte)) {
      ++digits;
    } else if (byte != '(' && byte != ')' && byte != '-' &&
               (byte != ' ' || (!word.empty() && word.back() != ' '))) {
      word += static_cast<char>(std::tolower(byte));
    }
  }
  while (word.ends_with(' ')) word.pop_back();
  if (word.empty()) return dots >= 3 && digits == 0;
  constexpr std::string_view words[] = {"snip",          "snipped",        "cut",
                                        "omitted",       "truncated",      "skipped",
                                        "lines omitted", "output omitted", "output truncated",
                                        "lines skipped", "lines",          "more lines"};
  const bool counts = word == "lines" || word == "more lines";
  return (!counts || (digits > 0 && (marked || dots >= 3))) &&
         std::find(std::begin(words), std::end(words), word) != std::end(words);
}

LogShape shape_of(std::string_view start) {
  const auto skip_blanks = [](std::string_view text) {
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    return at == std::string_view::npos ? std::string_view() : text.substr(at);
  };
  start = skip_blanks(start);
  if (const std::size_t end = start.find('\n');
      end != std::string_view::npos && is_fence(start.substr(0, end)))
    start = skip_blanks(start.substr(end + 1));
  if (start.empty()) return LogShape::text;
  const std::string_view inside = skip_blanks(start.substr(1));
  // "[rank0]: ..." and "{'loss': ..." are no JSON.
  if (start[0] == '[') return inside.empty() || inside[0] == '{' ? LogShape::document : LogShape::text;
  if (start[0] != '{' || (!inside.empty() && inside[0] != '"' && inside[0] != '}')) return LogShape::text;
  const std::size_t end = start.find('\n');
  if (end == std::string_view::npos) return names_event(start) ? LogShape::json_lines : LogShape::document;
  const auto line_of = [](std::string_view text) { return text.substr(0, text.find('\n')); };
  const std::string_view first = line_of(start), next = skip_blanks(start.substr(end));
  if (names_event(next)) return LogShape::json_lines;
  // A document may stand in one line too ("log_history": [{...}]).
  if (whole_json(first) && next.empty())
    return names_event(first) || !holds_objects(first) ? LogShape::json_lines : LogShape::document;
  if (next.empty() || next[0] != '{') return LogShape::document;
  if (whole_json(first)) return LogShape::json_lines;
  // The first line may be damaged. In a document whose elements have a line each, a comma ends the second one
  // or the list closes behind it.
  const std::string_view third = skip_blanks(next.substr(line_of(next).size()));
  const bool lines = whole_json(line_of(next)) && (third.empty() ? !opens(first) : third[0] == '{');
  return lines ? LogShape::json_lines : LogShape::document;
}

void check_text(std::string_view start, const std::string& origin) {
  const auto is = [&](std::string_view magic) { return start.starts_with(magic); };
  if (is("\x1f\x8b") || is("\x28\xb5\x2f\xfd") || is("BZh") ||
      is("\xfd"
         "7zXZ") ||
      is("PK\x03\x04"))
    not_text(origin, "is compressed; unpack it and audit the log inside");
  if (is("\xff\xfe") || is("\xfe\xff"))
    not_text(origin, "is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8` and audit the result");
  const std::string_view sample = start.substr(0, 65536);
  const auto odd = std::count_if(sample.begin(), sample.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b' && c != '\f' &&
           c != '\a';
  });
  if (10 * odd > static_cast<std::ptrdiff_t>(sample.size()))
    not_text(origin, "is not text (" + std::to_string(odd) + " control bytes in its first " +
                         std::to_string(sample.size()) + "); give the log that the trainer printed");
}

}  // namespace assay::spec::audit
