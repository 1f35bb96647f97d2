#include "spec/text/quantity.hpp"

#include <charconv>
#include <cmath>

namespace assay::spec {
namespace {

std::string grouped_digits(std::string digits) {
  const std::size_t sign = !digits.empty() && digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string formatted(double number, std::chars_format format, int digits) {
  if (std::isnan(number)) return "nan";
  char text[512];
  return {text, std::to_chars(text, text + sizeof text, number, format, digits).ptr};
}

/// Three significant digits: 7.84, 23.4, 512.
std::string three(double number) {
  const double size = std::fabs(number);
  return fixed(number, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string two(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

std::string grouped(std::int64_t number) { return grouped_digits(std::to_string(number)); }
std::string grouped(const Count& number) { return grouped_digits(number.to_string()); }

std::string fixed(double number, int digits) { return formatted(number, std::chars_format::fixed, digits); }

std::string scientific(double number, int digits) {
  return formatted(number, std::chars_format::scientific, digits);
}

std::string si(double number, std::string_view unit) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  while (std::fabs(number) >= 999.5 && prefix < 6) {
    number /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && number == std::floor(number);
  return (whole ? fixed(number, 0) : three(number)) + " " + prefixes[prefix] + std::string(unit);
}

std::string bytes(std::int64_t count) {
  static constexpr const char* prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (count < 1024) return std::to_string(count) + " B";
  double number = static_cast<double>(count);
  int prefix = 0;
  while (number >= 999.5 && prefix < 6) {
    number /= 1024;
    ++prefix;
  }
  return three(number) + " " + prefixes[prefix];
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 9.995) return fixed(seconds, 2) + " s";
  if (seconds < 99.95) return fixed(seconds, 1) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t minutes = whole / 60, hours = minutes / 60, days = hours / 24;
  if (hours == 0) return std::to_string(minutes) + " min " + two(whole % 60) + " s";
  if (days == 0) return std::to_string(hours) + " h " + two(minutes % 60) + " min";
  return std::to_string(days) + " d " + two(hours % 24) + " h";
}

std::string hexadecimal(std::uint64_t bits) {
  std::string digits(16, '0');
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 0xF];
  return digits;
}

std::string percent(double fraction, int digits) { return fixed(100 * fraction, digits) + " %"; }

}  // namespace assay::spec
