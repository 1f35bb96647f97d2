#include "spec/audit/readers/megatron_broken.hpp"

#include <algorithm>

#include "spec/audit/readers/megatron_lines.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {
namespace {

/// What names the number of a part: "grad norm" of " grad norm: 1.5 ". Empty where there is none.
std::string_view key_of(std::string_view part) {
  for (std::size_t end = 0; end < part.size(); ++end)
    if (part[end] == ':' || part[end] == '=') return trimmed(part.substr(0, end));
  return {};
}

bool is_named(std::string_view part) { return is_name(key_of(part)); }

constexpr std::string_view of_numbers = "0123456789.eE+-";

bool of_number(char c) { return of_numbers.find(c) != std::string_view::npos; }

bool is_rest_of_number(std::string_view text) {
  if (!text.empty() && prefix_unit(text.substr(text.size() - 1)) > 0) text.remove_suffix(1);  // "174K"
  return text.find_first_not_of(of_numbers) == std::string_view::npos;
}

/// What a break took away between `tail`, the last part of the line so far, and `text`: a blank between two
/// words, nothing within one or within a number, since no number of a step stands beside another one. Lines
/// broken at a width break anywhere; those broken between words lose the blank.
std::string_view between(std::string_view tail, std::string_view text) {
  if (tail.empty() || text.empty()) return "";
  const bool in_value = !key_of(tail).empty();
  if (in_value) return of_number(tail.back()) && of_number(text.front()) ? "" : " ";
  const std::string_view first = text.substr(0, text.find('|'));
  return is_named(std::string(tail) + std::string(first)) ? "" : " ";
}

/// Calls `ask` with what names each part, until it says so.
template <class Ask>
bool any_key(std::string_view parts, const Ask& ask) {
  while (!parts.empty()) {
    const std::size_t bar = std::min(parts.find('|'), parts.size());
    if (ask(key_of(parts.substr(0, bar)))) return true;
    parts.remove_prefix(std::min(bar + 1, parts.size()));
  }
  return false;
}

/// Whether a part of `more` has the name of one of `text`: it is another step's.
bool repeats(std::string_view text, std::string_view more) {
  return any_key(more, [&](std::string_view key) {
    return is_name(key) && text.find(key) != std::string_view::npos &&
           any_key(text, [&](std::string_view other) { return other == key; });
  });
}

/// Whether a part of `text` behind its first bar is named as step lines name them.
bool names_one(std::string_view text) {
  for (std::size_t bar; (bar = text.find('|')) != std::string_view::npos;) {
    text.remove_prefix(bar + 1);
    if (is_named(text.substr(0, text.find('|')))) return true;
  }
  return false;
}

}  // namespace

int parts_of_step(std::string_view text) {
  int count = 0;
  if (text.find('|') == std::string_view::npos) return count;
  any_key(text, [&](std::string_view key) {
    if (!is_name(key)) return false;
    const auto behind_key = static_cast<std::size_t>(key.data() - text.data()) + key.size();
    count += text[text.find_first_of(":=", behind_key)] == ':';
    return false;
  });
  return count;
}

void BrokenLine::hold(const Line& line) {
  text_ = line.text;
  line_ = line;
  last_ = line.number;
  holds_ = true;
}

bool BrokenLine::join(const Line& line) {
  constexpr std::size_t longest = 4096;  // of a whole step line; the longest known ones have 900 bytes
  const std::size_t bar = line.text.find('|');
  if (!holds_ || bar == std::string_view::npos || line.number != last_ + 1 || line.rank != line_.rank ||
      text_.size() + line.text.size() > longest || begins_step(line.text))
    return false;
  const std::string_view all = text_;
  const std::string_view tail = trimmed(all.substr(all.rfind('|') + 1));
  std::string joined(tail);
  std::string_view rest = line.text;  // may be indented
  if (!tail.empty()) rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::string_view first = trimmed(rest.substr(0, rest.find('|')));
  const bool within =
      !key_of(tail).empty() && of_number(tail.back()) && !first.empty() && is_rest_of_number(first);
  if (!within) joined += between(tail, rest);
  const std::size_t seam = joined.size();
  joined += rest;
  if (!names_one(line.text)) {
    if (!is_named(std::string_view(joined).substr(0, seam + rest.find('|')))) return false;
    // A value behind its name, or the rest of one, with a bar and nothing behind it.
    const bool value = !key_of(tail).empty();
    if (value && (!is_rest_of_number(trimmed(line.text.substr(0, bar))) || bar + 1 != line.text.size()))
      return false;
  }
  if (repeats(all.substr(0, all.rfind('|')), joined)) return false;
  const std::size_t kept = tail.empty() ? text_.size() : static_cast<std::size_t>(tail.data() - all.data());
  text_.resize(kept);
  text_ += joined;
  last_ = line.number;
  line_.complete = line.complete;
  return true;
}

Line BrokenLine::take() {
  holds_ = false;
  line_.text = text_;
  return line_;
}

}  // namespace assay::spec::audit::megatron
