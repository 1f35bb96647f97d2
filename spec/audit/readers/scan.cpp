#include "spec/audit/readers/scan.hpp"

#include <algorithm>
#include <cctype>

namespace assay::spec::audit {
namespace {

bool digit(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

/// Length of "nan", "inf" or "infinity" at `at`, in any case, with no letter behind.
std::size_t word_length(std::string_view text, std::size_t at) {
  const auto same = [&](std::string_view word) {
    if (text.size() - at < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if (std::tolower(static_cast<unsigned char>(text[at + i])) != word[i]) return false;
    return at + word.size() == text.size() ||
           !std::isalpha(static_cast<unsigned char>(text[at + word.size()]));
  };
  for (const std::string_view word : {"infinity", "nan", "inf"})
    if (same(word)) return word.size();
  return 0;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

/// text.find(key, from); quick where it stands near, as the next key of a line does.
std::size_t find_near(std::string_view text, std::string_view key, std::size_t from) {
  constexpr std::size_t near = 24;
  if (key.empty() || text.size() < from + near + key.size()) return text.find(key, from);
  for (const char *at = text.data() + from, *const end = at + near; at != end; ++at)
    if (*at == key[0] && std::equal(key.begin() + 1, key.end(), at + 1))
      return static_cast<std::size_t>(at - text.data());
  return text.find(key, from + near);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::string_view number_token(std::string_view text) {
  skip_blanks(text);
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) at = 1;
  if (at < text.size() && !digit(text, at) && text[at] != '.') {
    const std::size_t length = word_length(text, at);
    return length == 0 ? std::string_view() : text.substr(0, at + length);
  }
  bool any = false;
  for (; at < text.size(); ++at) {
    if (digit(text, at))
      any = true;
    else if ((text[at] != ',' && text[at] != '_') || !any || !digit(text, at + 1))
      break;
  }
  if (at < text.size() && text[at] == '.' && (any || digit(text, at + 1))) {
    ++at;
    while (digit(text, at)) any = true, ++at;
  }
  if (!any) return {};
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const std::size_t sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 1 : 0;
    if (digit(text, at + 1 + sign)) {
      at += 1 + sign;
      while (digit(text, at)) ++at;
    }
  }
  return text.substr(0, at);
}

std::string_view followed_number(std::string_view text) {
  const std::string_view token = number_token(text);
  return token.data() + token.size() == text.data() + text.size() ? std::string_view() : token;
}

std::string_view behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

std::string_view argument(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    const std::size_t end = at + name.size();
    const char before = at == 0 ? ' ' : text[at - 1];
    if (end >= text.size() || text[end] != '=' || std::isalnum(static_cast<unsigned char>(before)) ||
        before == '_')
      continue;
    const std::string_view value = text.substr(end + 1);
    const std::size_t length = value.find_first_of(", )]}");
    // Of a list that is cut, the last value may be cut too.
    const auto count = [&](char c) { return std::count(text.begin(), text.end(), c); };
    if (length == std::string_view::npos && count('(') > count(')')) return {};
    return value.substr(0, length);
  }
  return {};
}

std::string_view Scan::behind_next(std::string_view key) const {
  std::size_t found = find_near(text_, key, at_);
  if (found == std::string_view::npos && at_ > 0) found = text_.find(key);
  return found == std::string_view::npos ? std::string_view() : text_.substr(found + key.size());
}

Scan::Found Scan::read(std::string_view key, Kind kind, double unit, std::string_view suffix, Printed& out) {
  const std::string_view rest = behind_next(key);
  if (!rest.data()) return Found::nothing;
  const char *at = rest.data(), *const end = at + rest.size();
  while (at != end && (*at == ' ' || *at == '\t')) ++at;
  number_ = static_cast<std::size_t>(at - text_.data());
  bool good = take_plain(at, end, kind, unit, line_, out);
  if (!good) {
    const std::string_view token = number_token({at, static_cast<std::size_t>(end - at)});
    if (token.empty()) {
      bad_ = true;
      return Found::bad;
    }
    const auto number = parse_printed(token, kind, unit, line_);
    if (number) out = *number;
    good = number.has_value();
    at += token.size();
  }
  at_ = static_cast<std::size_t>(at - text_.data());
  if (good && !suffix.empty()) {
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
    good = std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(suffix);
  }
  bad_ = bad_ || !good;
  return good ? Found::number : Found::bad;
}

std::optional<Printed> Scan::after(std::string_view key, Kind kind, double unit, std::string_view suffix) {
  Printed number;
  return read(key, kind, unit, suffix, number) == Found::number ? std::optional(number) : std::nullopt;
}

void Scan::take(Step& step, Field field, std::string_view key, Kind kind, double unit,
                std::string_view suffix, bool needed) {
  Printed number;
  const Found found = read(key, kind, unit, suffix, number);
  if (found == Found::number) {
    step[field] = number;
    if (taken_) taken_->add(text_.data() + number_, field, kind, unit);
  } else if (needed) {
    bad_ = true;
  }
}

void Scan::take_at(Step& step, Field field, std::string_view text, Kind kind, double unit) {
  skip_blanks(text);
  const char* const start = text.data();
  step[field] = take_number(text, kind, unit, line_);
  if (!step[field])
    bad_ = true;
  else if (taken_)
    taken_->add(start, field, kind, unit);
}

double prefix_unit(std::string_view prefix) {
  if (prefix.empty()) return 1;
  if (prefix.size() > 1) return 0;
  switch (prefix[0]) {
    case 'k':
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
    case 'B':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    default:
      return 0;
  }
}

std::optional<Printed> take_number(std::string_view& text, Kind kind, double unit, std::int64_t line) {
  skip_blanks(text);
  const char* at = text.data();
  if (Printed plain; take_plain(at, at + text.size(), kind, unit, line, plain)) {
    text.remove_prefix(static_cast<std::size_t>(at - text.data()));
    return plain;
  }
  const std::string_view token = number_token(text);
  text.remove_prefix(token.size());
  return parse_printed(token, kind, unit, line);
}

std::optional<Printed> prefixed_number(std::string_view text, Kind kind, double unit, std::int64_t line,
                                       TakenNumbers* taken, Field field) {
  skip_blanks(text);
  std::string_view rest = text;
  const auto number = take_number(rest, kind, unit, line);
  const auto letter = [&](std::size_t at) {
    return at < rest.size() && std::isalpha(static_cast<unsigned char>(rest[at])) != 0;
  };
  // "5.7TFLOPS": the letters are a unit, which the caller knows.
  const double prefix = letter(0) && !letter(1) ? prefix_unit(rest.substr(0, 1)) : 1;
  const bool prefixed = prefix != 1 && prefix != 0;
  if (number && taken)
    taken->add(text.data(), field, prefixed ? Kind::measured : kind, prefixed ? unit * prefix : unit);
  return prefixed ? take_number(text, Kind::measured, unit * prefix, line) : number;
}

bool of_rewards(std::string_view key) {
  return key == "reward" || key == "rewards" || key == "kl" || key == "objective/kl" ||
         key.starts_with("rewards/") || key.starts_with("reward_") || key.starts_with("reward/");
}

}  // namespace assay::spec::audit
