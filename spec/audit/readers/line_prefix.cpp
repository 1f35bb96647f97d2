#include "spec/audit/readers/line_prefix.hpp"

#include <algorithm>

#include "spec/audit/readers/rank_prefix.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::size_t longest_prefix = 256;
bool of_host_name(char c) {
  return alphabetic(c) || numeral(c) || std::string_view("._-/@").find(c) != std::string_view::npos;
}

/// Bytes of the word of at most 128 bytes of a name at `at`.
std::size_t name_length(std::string_view text, std::size_t at) {
  const std::size_t from = at, most = std::min(text.size(), at + 128);
  while (at < most && of_host_name(text[at])) ++at;
  return at - from;
}

/// "2025-05-01T10:00:00.123Z stdout F ", "[2025-05-01 10:00:00,123] ", "May  1 10:00:00 ", "10:00:00 ".
std::size_t stamp_length(std::string_view text) {
  std::size_t at = 0;
  const bool bracket = pass_form(text, at, "[");
  if (!pass_form(text, at, "0000-00-00T00:00:00") && !pass_form(text, at, "0000-00-00 00:00:00") &&
      !pass_form(text, at, "AAA _0 00:00:00") && !pass_form(text, at, "00:00:00"))
    return 0;
  if (at < text.size() && (text[at] == '.' || text[at] == ','))
    for (++at; at < text.size() && numeral(text[at]); ++at) {
    }
  if (!pass_form(text, at, "Z") && !pass_form(text, at, "+00:00") && !pass_form(text, at, "-00:00") &&
      !pass_form(text, at, "+0000"))
    pass_form(text, at, "-0000");
  if (bracket && !pass_form(text, at, "]")) return 0;
  if (!pass_form(text, at, ": ") && !pass_form(text, at, " ") && !pass_form(text, at, "\t")) return 0;
  if (!pass_form(text, at, "stdout ") && !pass_form(text, at, "stderr "))
    return at;  // what runs containers adds these
  if (!pass_form(text, at, "F ")) pass_form(text, at, "P ");
  return at;
}

/// "node03: "
std::size_t host_length(std::string_view text) {
  std::size_t at = name_length(text, 0);
  return at > 0 && pass_form(text, at, ": ") ? at : 0;
}

/// "node03 python[71]: ", as journals write it behind their stamp.
std::size_t unit_length(std::string_view text) {
  std::size_t at = name_length(text, 0);
  if (at == 0 || !pass_form(text, at, " ")) return 0;
  const std::size_t name = name_length(text, at);
  at += name;
  if (name == 0 || !pass_form(text, at, "[0")) return 0;
  while (at < text.size() && numeral(text[at])) ++at;
  return pass_form(text, at, "]: ") ? at : 0;
}

/// "worker-1  | "
std::size_t bar_length(std::string_view text) {
  std::size_t at = name_length(text, 0);
  if (at == 0) return 0;
  while (at < text.size() && text[at] == ' ') ++at;
  return pass_form(text, at, "| ") ? at : 0;
}

/// "[pod/trainer-0/main] ", "(Worker pid=71) ": what stands between the two, at most 200 bytes.
std::size_t enclosed_length(std::string_view text, char open, char close) {
  if (!text.starts_with(open)) return 0;
  std::size_t at = text.substr(0, 200).find(close);
  if (at == std::string_view::npos) return 0;
  ++at;
  if (!pass_form(text, at, ": ") && !pass_form(text, at, " ")) pass_form(text, at, ":");
  return at;
}

/// "INFO:root:", "INFO: ".
std::size_t level_length(std::string_view text) {
  std::size_t at = level_word(text);
  if (at == 0 || !pass_form(text, at, ":")) return 0;
  std::size_t name = at + name_length(text, at);
  if (name > at && pass_form(text, name, ":")) at = name;
  pass_form(text, at, " ");
  return at;
}

std::size_t rank_length(std::string_view text) {
  std::string_view rest = text;
  if (take_rank(rest) < 0) return 0;
  std::size_t at = text.size() - rest.size();
  pass_form(text, at, " ");
  return at;
}

std::string_view head_of(std::string_view name) {
  return name.substr(
      0, static_cast<std::size_t>(std::find_if_not(name.begin(), name.end(), alphabetic) - name.begin()));
}

}  // namespace

std::size_t LinePrefix::length(Kind kind, std::string_view text) {
  switch (kind) {
    case Kind::rank:
      return rank_length(text);
    case Kind::stamp:
      return stamp_length(text);
    case Kind::host:
      return host_length(text);
    case Kind::unit:
      return unit_length(text);
    case Kind::bar:
      return bar_length(text);
    case Kind::bracket:
      return enclosed_length(text, '[', ']');
    case Kind::parenthesis:
      return enclosed_length(text, '(', ')');
    case Kind::level:
      return level_length(text);
  }
  return 0;
}

/// The part of a prefix that `text` starts with; `length` is 0 where it starts with none. A number that is
/// left at the start of a whole line (`first`) is no rank: those are off.
LinePrefix::Part LinePrefix::part(std::string_view text, bool first, std::size_t& length) {
  for (const Kind kind : {Kind::rank, Kind::stamp, Kind::level, Kind::host, Kind::unit, Kind::bar,
                          Kind::bracket, Kind::parenthesis})
    if (length = LinePrefix::length(kind, text); length > 0) {
      if (kind == Kind::rank && first && text[0] != '[') continue;
      const bool named = kind == Kind::host || kind == Kind::bar;
      return {kind, text[length - 1] == ' ', std::string(named ? head_of(text) : std::string_view())};
    }
  return {};
}

bool may_have_prefix(std::string_view text) {
  std::size_t size = 0;
  LinePrefix::part(text, true, size);
  // Our own record is the one that is known by the start of its lines alone.
  return size > 0 || text.substr(0, longest_prefix).find("{\"event\"") != std::string_view::npos;
}

std::size_t before_own(const LineFormat& format, std::string_view step_line) {
  std::size_t found = 0;
  bool known = format.recognises(step_line);
  for (std::size_t at = 1; at < std::min(step_line.size(), longest_prefix); ++at) {
    const char before = step_line[at - 1];
    if (alphabetic(before) || numeral(before) || before == '_') continue;
    const bool others =
        !format.never_behind.empty() && step_line.substr(0, at).ends_with(format.never_behind);
    const bool here = !others && format.recognises(step_line.substr(at));
    if (known && !here) break;
    if (here) found = at;
    known = here;
  }
  return found;
}

LinePrefix::LinePrefix(const LineFormat& format, std::string_view step_line) {
  constexpr std::size_t most = 4;
  only_behind_ = !format.recognises(step_line);
  const std::size_t own = before_own(format, step_line);
  whole_ = PrefixForm(step_line.substr(0, own));
  std::vector<Part> parts;
  std::size_t taken = 0, parts_end = 0;
  while (parts.size() < most) {
    std::size_t size = 0;
    Part next = part(step_line.substr(taken), parts.empty(), size);
    if (size == 0) break;
    taken += size;
    parts.push_back(std::move(next));
    if (!format.recognises(step_line.substr(taken))) continue;
    // What stands behind the rank, like the trainer's own stamp, belongs to the step.
    if (parts.back().kind == Kind::rank) of_steps_ = parts.size();
    parts_ = parts;
    parts_end = taken;
    if (only_behind_ && of_steps_ == 0) break;
  }
  if (only_behind_ && of_steps_ == 0) of_steps_ = parts_.size();
  if (own > parts_end) rest_ = PrefixForm(step_line.substr(parts_end, own - parts_end));
}

bool LinePrefix::take(Line& line, std::size_t parts, bool rest) const {
  std::size_t there = 0;
  for (; there < parts; ++there) {
    const Part& part = parts_[there];
    std::size_t size = length(part.kind, line.text);
    if (size == 0 || head_of(line.text.substr(0, part.head.empty() ? 0 : size)) != part.head) break;
    if (!part.blank && line.text[size - 1] == ' ') --size;
    if (part.kind == Kind::rank) {
      std::string_view behind = line.text;
      line.rank = take_rank(behind);
    }
    line.text.remove_prefix(size);
  }
  std::size_t size = 0;
  if (rest && there == 0)
    size = whole_.length(line.text);
  else if (rest && there == parts_.size())
    size = rest_.length(line.text);
  line.text.remove_prefix(size);
  return there > 0 || size > 0;
}

}  // namespace assay::spec::audit
