#include "spec/audit/printed.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace assay::spec::audit {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

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
  std::string digits;  // as from_chars reads them
  int behind_point = 0, significant = 0, exponent = 0;
  bool integer = true;
};

std::optional<Decimal> decimal(std::string_view text) {
  Decimal parts;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    if (text[at] == '-') parts.digits += '-';
    ++at;
  }
  bool any = false, leading = true;
  const auto digit = [&](char c) {
    parts.digits += c;
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
    parts.digits += '.';
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
    parts.digits += 'e' + std::to_string(parts.exponent);
  }
  if (at != text.size()) return std::nullopt;
  return parts;
}

}  // namespace

Printed exactly(double value, std::int64_t line) { return {value, value, value, line}; }

std::optional<Printed> parse_printed(std::string_view text, Kind kind, double unit, std::int64_t line) {
  if (const auto special = not_a_number_or_infinite(text)) return exactly(*special, line);
  if (text.size() > 400) return std::nullopt;
  const auto parts = decimal(text);
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
