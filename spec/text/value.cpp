#include "spec/text/value.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace assay::spec {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string shortest(double number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  std::string out(digits, end);
  // TOML distinguishes numbers from integers by a point or an exponent.
  if (std::isfinite(number) && out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace

std::string type_name(KeyType type) {
  switch (type) {
    case KeyType::integer:
      return "an integer";
    case KeyType::number:
      return "a number";
    case KeyType::list:
      return "a list of texts";
    case KeyType::text:
    case KeyType::choice:
      break;
  }
  return "a text";
}

std::string toml_literal(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return shortest(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  std::string out = "[";
  for (const std::string& entry : std::get<std::vector<std::string>>(value))
    out += (out.size() > 1 ? ", " : "") + quoted(entry);
  return out + "]";
}

std::string shown(const Value& value) {
  constexpr std::size_t longest = 80;
  const std::string whole = toml_literal(value);
  return whole.size() <= longest ? whole : whole.substr(0, longest) + "...";
}

}  // namespace assay::spec
