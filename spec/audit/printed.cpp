#include "spec/audit/printed.hpp"
#include "spec/interval.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "spec/audit/digits.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
std::uint64_t value_of(char digit) { return static_cast<std::uint64_t>(digit - '0'); }

std::optional<double> not_a_number_or_infinite(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (lower == "nan" || lower == "-nan") return std::numeric_limits<double>::quiet_NaN();
  if (lower == "inf" || lower == "+inf" || lower == "infinity") return infinity;
  if (lower == "-inf" || lower == "-infinity") return -infinity;
  return std::nullopt;
}

/// The parts of a decimal: digits without groups, how many stand behind the point, the exponent.
struct Decimal {
  std::string_view digits;  // as from_chars reads them
  int behind_point = 0, significant = 0, exponent = 0;
  bool integer = true;
};

/// `without_groups` holds the digits when separators had to go.
std::optional<Decimal> decimal(std::string_view text, std::string& without_groups) {
  Decimal parts;
  std::size_t at = 0;
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-')) ++at;
  bool any = false, leading = true;
  const auto digit = [&](char c) {
    any = true;
    leading = leading && c == '0';
    if (!leading) ++parts.significant;
  };
  std::size_t group = 0;
  char separator = 0;
  for (; at < text.size(); ++at) {
    if (is_digit(text[at])) {
      digit(text[at]);
      ++group;
    } else if ((text[at] == ',' || text[at] == '_') && any && (separator == 0 ? group <= 3 : group == 3)) {
      if (separator != 0 && text[at] != separator) return std::nullopt;
      separator = text[at];
      group = 0;
    } else {
      break;
    }
  }
  if (separator != 0 && group != 3) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    parts.integer = false;
    for (++at; at < text.size() && is_digit(text[at]); ++at, ++parts.behind_point) digit(text[at]);
  }
  if (!any) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    parts.integer = false;
    std::size_t from = at + 1;
    if (from < text.size() && text[from] == '+') ++from;
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + text.size(), parts.exponent);
    if (error != std::errc() || std::abs(parts.exponent) > 400) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
  }
  if (at != text.size()) return std::nullopt;
  parts.digits = text;
  if (separator != 0) {
    for (const char c : text)
      if (c != separator) without_groups += c;
    parts.digits = without_groups;
  }
  return parts;
}

/// The value of a decimal without groups of 15 digits or more, which is `digits` / 10^power: by the quick way
/// where that reaches, else by the general one; and its half unit.
bool long_decimal(const char* first, const char* last, std::uint64_t digits, std::ptrdiff_t power,
                  bool rounded, double unit, std::int64_t line, Printed& out) {
  constexpr std::ptrdiff_t highest_power = 27;  // of nearest_quotient
  double value = 0;
  const bool quick = power >= 0 && power <= highest_power;
  if (const auto quotient = quick ? nearest_quotient(digits, static_cast<int>(power)) : std::nullopt) {
    value = *first == '-' ? -*quotient : *quotient;
  } else {
    const auto [stop, error] = std::from_chars(first, last, value);
    if (error != std::errc() || stop != last) return false;
  }
  value *= unit;
  if (!std::isfinite(value)) return false;
  const double half = rounded ? std::abs(value) * std::numeric_limits<double>::epsilon() : 0;
  out = {value, value - half, value + half, line};
  return true;
}

/// Takes ",123" again and again. False where what follows is grouped in another way.
bool take_groups(const char*& at, const char* end, std::ptrdiff_t& count, std::uint64_t& digits) {
  if (end - at > 1 && is_digit(at[1]) && (count == 0 || count > 3)) return false;
  while (end - at > 1 && (*at == ',' || *at == '_') && is_digit(at[1])) {
    if (*at == '_' || end - at < 4 || !is_digit(at[2]) || !is_digit(at[3])) return false;
    if ((end - at > 4 && is_digit(at[4])) || count > 15) return false;
    digits = digits * 1000 + value_of(at[1]) * 100 + value_of(at[2]) * 10 + value_of(at[3]);
    at += 4;
    count += 3;
  }
  return true;
}

/// Takes "e-05". False where it has more than two digits.
bool take_exponent(const char*& at, const char* end, int& exponent) {
  const bool down = end - at > 1 && at[1] == '-', sign = down || (end - at > 1 && at[1] == '+');
  const char* digit = at + 1 + sign;
  if (digit >= end || !is_digit(*digit)) return true;  // the letter is no exponent's
  for (at = digit; at != end && is_digit(*at); ++at) {
    if (at - digit == 2) return false;
    exponent = exponent * 10 + (*at - '0');
  }
  if (down) exponent = -exponent;
  return true;
}

/// A decimal of less than 15 digits and a power of ten up to 22 is one division or product of two exact
/// doubles, rounded once (Clinger 1990).
[[gnu::noinline]] bool take_decimal(const char*& at, const char* end, Kind kind, double unit,
                                    std::int64_t line, Printed& out, bool groups) {
  const char* now = at;
  const bool negative = now != end && *now == '-';
  if (negative || (now != end && *now == '+')) ++now;
  const char* const first = now;
  std::uint64_t digits = take_digits(now, end, 0);
  const std::ptrdiff_t ungrouped = now - first;
  std::ptrdiff_t count = ungrouped, behind_point = 0;
  if (groups && now != end && (*now == ',' || *now == '_') && !take_groups(now, end, count, digits))
    return false;
  const bool grouped = count != ungrouped;
  bool rounded = kind == Kind::measured;
  if (now != end && *now == '.') {
    rounded = true;
    const char* const point = ++now;
    digits = take_digits(now, end, digits);
    behind_point = now - point;
    count += behind_point;
  }
  int exponent = 0;
  if (now != end && (*now == 'e' || *now == 'E')) {
    const char* const letter = now;
    if (!take_exponent(now, end, exponent)) return false;
    rounded = rounded || now != letter;
  }
  if (count == 0 || count > 19) return false;
  if (digits >= 100'000'000'000'000 || count > 15) {
    if (digits < 100'000'000'000'000 || grouped ||
        !long_decimal(negative ? first - 1 : first, now, digits, behind_point - exponent, rounded, unit, line,
                      out))
      return false;
    at = now;
    return true;
  }
  const auto power = exponent - behind_point;
  if (power < -22 || power > 22) return false;
  const double magnitude = static_cast<double>(digits), whole = negative ? -magnitude : magnitude;
  const double value = (power < 0 ? whole / powers_of_ten[-power] : whole * powers_of_ten[power]) * unit;
  if (!std::isfinite(value)) return false;
  const double half =
      rounded ? 0.5 * (power < 0 ? inverse_powers_of_ten[-power] : powers_of_ten[power]) * std::abs(unit) : 0;
  out = {value, value - half, value + half, line};
  at = now;
  return true;
}

}  // namespace

/// Most numbers: a few digits, perhaps a point, a few more. Anything else is take_decimal's.
bool take_plain(const char*& at, const char* end, Kind kind, double unit, std::int64_t line, Printed& out,
                bool groups) {
  const char* now = at;
  const bool negative = now != end && *now == '-';
  if (negative) ++now;
  const char* const first = now;
  std::uint64_t digits = 0;
  for (; now != end && is_digit(*now); ++now) digits = digits * 10 + value_of(*now);
  std::ptrdiff_t count = now - first, behind_point = 0;
  if (now != end && *now == '.') {
    const char* const point = ++now;
    for (; now != end && is_digit(*now); ++now) digits = digits * 10 + value_of(*now);
    behind_point = now - point;
    count += behind_point;
  }
  const char next = now != end ? *now : ' ';
  if (count == 0 || count > 14 || next == 'e' || next == 'E' ||
      (groups && (next == ',' || next == '_') && end - now > 1 && is_digit(now[1])))
    return take_decimal(at, end, kind, unit, line, out, groups);
  const double magnitude = static_cast<double>(static_cast<std::int64_t>(digits));
  const double value = (negative ? -magnitude : magnitude) / powers_of_ten[behind_point] * unit;
  if (!std::isfinite(value)) return false;
  // The point may be the last byte: "12." is rounded too.
  const bool rounded = kind == Kind::measured || now != first + count;
  const double half = rounded ? 0.5 * inverse_powers_of_ten[behind_point] * std::abs(unit) : 0;
  out = {value, value - half, value + half, line};
  at = now;
  return true;
}

Printed exactly(double value, std::int64_t line) { return {value, value, value, line}; }

Printed product(const Printed& a, const Printed& b, std::int64_t line) {
  const Interval all = Interval{a.low, a.high} * Interval{b.low, b.high};
  return {a.value * b.value, all.low, all.high, line};
}

std::optional<Printed> parse_printed(std::string_view text, Kind kind, double unit, std::int64_t line) {
  if (text.size() > 400) return std::nullopt;
  const char* at = text.data();
  const char* const last = at + text.size();
  if (Printed plain; take_plain(at, last, kind, unit, line, plain) && at == last) return plain;
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (text.size() > sign && std::isalpha(static_cast<unsigned char>(text[sign]))) {
    const auto special = not_a_number_or_infinite(text);
    return special ? std::optional(exactly(*special, line)) : std::nullopt;
  }
  std::string without_groups;
  const auto parts = decimal(text, without_groups);
  if (!parts) return std::nullopt;
  double value = 0;
  const char* end = parts->digits.data() + parts->digits.size();
  const auto [stop, error] = std::from_chars(parts->digits.data(), end, value);
  if (error == std::errc::result_out_of_range || !std::isfinite(value * unit)) return std::nullopt;
  if (error != std::errc() || stop != end) return std::nullopt;
  value *= unit;
  constexpr double spacing = std::numeric_limits<double>::epsilon();
  double half = 0;
  if (kind == Kind::measured || !parts->integer)
    half = parts->significant >= 15
               ? std::abs(value) * spacing
               : 0.5 * std::pow(10.0, parts->exponent - parts->behind_point) * std::abs(unit);
  return Printed{value, value - half, value + half, line};
}

}  // namespace assay::spec::audit
