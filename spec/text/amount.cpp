#include "spec/text/amount.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace assay::spec {
namespace {

constexpr std::size_t longest = 64;

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Whether a comma between thousands, or an underscore between digits, stands there. "0,003" and "1,5" are
/// decimals in half of Europe: their comma is none.
bool is_separator(std::string_view text, std::size_t at) {
  const auto digit_at = [&](std::size_t i) { return i < text.size() && digit(text[i]); };
  if (at == 0 || !digit_at(at - 1)) return false;
  if (text[at] == '_') return digit_at(at + 1);
  return text[at] == ',' && digit_at(at + 1) && digit_at(at + 2) && digit_at(at + 3) && !digit_at(at + 4) &&
         text[0] != '0';
}

std::string without_separators(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!is_separator(text, i)) plain += text[i];
  return plain;
}

/// A plain decimal number that begins with a digit; separators between digits are left out.
std::optional<double> number(std::string_view text) {
  const std::string plain = without_separators(text);
  if (plain.empty() || !digit(plain[0])) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> magnitude(char letter) {
  switch (letter) {
    case 'k':
    case 'K':
      return 1e3;
    case 'm':
    case 'M':
      return 1e6;
    case 'b':
    case 'B':
    case 'g':
    case 'G':
      return 1e9;
    case 't':
    case 'T':
      return 1e12;
    default:
      return std::nullopt;
  }
}

std::optional<double> amount(std::string_view text) {
  if (text.empty() || text.size() > longest) return std::nullopt;
  const auto scale = magnitude(text.back());
  const auto value = number(scale ? text.substr(0, text.size() - 1) : text);
  if (!value) return std::nullopt;
  const double scaled = *value * scale.value_or(1);
  return std::isfinite(scaled) ? std::optional(scaled) : std::nullopt;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.size() > longest) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int ten = 0, two = 0;  // powers of them that the letters stand for
  const bool binary = text.ends_with('i');
  if (binary) text.remove_suffix(1);
  if (const auto scale = text.empty() ? std::nullopt : magnitude(text.back())) {
    const int thousands = static_cast<int>(std::lround(std::log10(*scale))) / 3;
    (binary ? two : ten) = thousands * (binary ? 10 : 3);
    text.remove_suffix(1);
  } else if (binary) {
    return std::nullopt;
  }
  const std::string plain = without_separators(text);
  const std::size_t exponent = std::min(plain.find_first_of("eE"), plain.size());
  if (exponent < plain.size()) {
    int power = 0;
    const char* begin = plain.data() + exponent + 1;
    if (*begin == '+') ++begin;
    const auto [end, error] = std::from_chars(begin, plain.data() + plain.size(), power);
    if (error != std::errc() || end != plain.data() + plain.size() || std::abs(power) > 99)
      return std::nullopt;
    ten += power;
  }
  const std::size_t point = std::min(plain.find('.'), exponent);
  std::string digits = plain.substr(0, point);
  if (point < exponent) digits += plain.substr(point + 1, exponent - point - 1);
  if (point == 0 || point + 1 == exponent || !std::ranges::all_of(digits, digit)) return std::nullopt;
  ten -= static_cast<int>(digits.size() - point);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back(), ++ten;
  __extension__ using Wide = unsigned __int128;
  Wide value = 0;
  constexpr Wide most = Wide{1} << 63;
  for (const char c : digits) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > most) return std::nullopt;
  }
  value <<= two;  // at most 2^103
  for (; ten < 0 && value > 0; ++ten) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  for (; ten > 0 && value > 0; --ten)
    if ((value *= 10) > most) return std::nullopt;
  if (value > most || (value == most && !negative)) return std::nullopt;
  return negative ? static_cast<std::int64_t>(-value) : static_cast<std::int64_t>(value);
}

std::optional<double> real_number(std::string_view text) {
  if (text.size() > longest || text.find(',') != text.npos) return std::nullopt;
  const std::string plain = without_separators(text.substr(text.starts_with('+') ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  return error == std::errc() && end == plain.data() + plain.size() ? std::optional(value) : std::nullopt;
}

std::optional<double> fraction(std::string_view text) {
  if (text.empty() || text.size() > longest) return std::nullopt;
  if (text.back() != '%') {
    const auto value = number(text);
    return value && *value <= 1 ? value : std::nullopt;
  }
  text.remove_suffix(1);
  if (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto value = number(text);
  return value ? std::optional(*value / 100) : std::nullopt;
}

}  // namespace assay::spec
