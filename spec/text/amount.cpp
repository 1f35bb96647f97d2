#include "spec/text/amount.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace assay::spec {
namespace {

constexpr std::size_t longest = 64;

bool digit(char c) { return c >= '0' && c <= '9'; }

/// A plain decimal number that begins with a digit; separators between digits are left out.
std::optional<double> number(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separator = (text[i] == ',' || text[i] == '_') && i > 0 && i + 1 < text.size() &&
                           digit(text[i - 1]) && digit(text[i + 1]);
    if (!separator) plain += text[i];
  }
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
