#include "spec/audit/readers/odd_characters.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace assay::spec::audit {
namespace {

constexpr std::pair<std::string_view, char> entities[] = {{"&#x27;", '\''}, {"&#39;", '\''}, {"&apos;", '\''},
                                                          {"&quot;", '"'},  {"&#34;", '"'},  {"&lt;", '<'},
                                                          {"&gt;", '>'},    {"&nbsp;", ' '}, {"&amp;", '&'}};

/// The code point of three bytes of UTF-8, or of two; 0 of anything else, whose first byte is kept.
std::uint32_t code_point(std::string_view text, std::size_t& size) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])) : 0U;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xc0) == 0x80; };
  size = 1;
  if ((byte(0) & 0xe0) == 0xc0 && follows(1)) {
    size = 2;
    return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
  }
  if ((byte(0) & 0xf0) == 0xe0 && follows(1) && follows(2)) {
    size = 3;
    return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  }
  return 0;
}

/// What stands for a character; 0: the character itself, -1: nothing.
int plain_of(std::uint32_t code, bool quotes, bool double_quotes) {
  if (code == 0xa0 || (code >= 0x2000 && code <= 0x200a) || code == 0x202f || code == 0x205f ||
      code == 0x3000)
    return ' ';
  if (code == 0xad || (code >= 0x200b && code <= 0x200f) || code == 0x2060 || code == 0xfeff) return -1;
  if (code >= 0x2018 && code <= 0x201b) return quotes ? '\'' : 0;
  if (code >= 0x201c && code <= 0x201f) return double_quotes ? '"' : 0;
  if ((code >= 0x2010 && code <= 0x2014) || code == 0x2212) return '-';
  constexpr std::uint32_t wide_double_quote = 0xff02, wide_quote = 0xff07, wide_backslash = 0xff3c;
  if ((code == wide_double_quote && !double_quotes) || (code == wide_quote && !quotes) ||
      (code == wide_backslash && !(quotes && double_quotes)))
    return 0;
  if (code >= 0xff01 && code <= 0xff5e) return static_cast<int>(code - 0xff01 + '!');
  return 0;
}

}  // namespace

int plain_at(std::string_view text, bool quotes, bool double_quotes, std::size_t& size) {
  size = 1;
  if (static_cast<unsigned char>(text[0]) >= 0x80)
    return plain_of(code_point(text, size), quotes, double_quotes);
  if (text[0] == '&')
    for (const auto& [name, sign] : entities)
      if (text.starts_with(name)) {
        size = name.size();
        return (sign == '"' && !double_quotes) || (sign == '\'' && !quotes) ? 0 : sign;
      }
  return 0;
}

namespace {

/// The high bits of those of eight bytes that are `byte`; of one above such a byte, perhaps, too.
constexpr std::uint64_t same(std::uint64_t eight, unsigned char byte) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  const std::uint64_t other = eight ^ (ones * byte);
  return (other - ones) & ~other & 0x80 * ones;
}

/// Whether an odd character may begin in the first eight bytes; reads one more. Those that logs are full of,
/// frames of tables (U+2500 and on), arrows and letters, are distinguished from odd ones by two bytes.
bool may_begin(const char* bytes) {
  std::uint64_t first = 0, second = 0;
  std::memcpy(&first, bytes, 8);
  if ((first & 0x8080808080808080) == 0) return false;
  std::memcpy(&second, bytes + 1, 8);
  const std::uint64_t general = same(second, 0x80) | same(second, 0x81) | same(second, 0x88);
  return (same(first, 0xc2) | same(first, 0xe3) | same(first, 0xef) | (same(first, 0xe2) & general)) != 0;
}

/// Whether an entity stands in `text`.
bool holds_entity(std::string_view text) {
  for (std::size_t sign = 0; (sign = text.find('&', sign)) != std::string_view::npos; ++sign)
    for (const auto& [name, plain] : entities)
      if (text.substr(sign).starts_with(name)) return true;
  return false;
}

}  // namespace

bool may_be_odd(std::string_view text) {
  for (std::size_t from = 0; from < text.size(); from += 8) {
    if (from + 8 < text.size() && !may_begin(text.data() + from)) continue;
    for (std::size_t at = from, size = 0; at < std::min(from + 8, text.size()); ++at)
      if (text[at] != '&' && plain_at(text.substr(at), true, true, size) != 0) return true;
  }
  return holds_entity(text);
}

std::string with_plain_characters(std::string_view text) {
  const bool quotes = text.find('\'') == std::string_view::npos,
             double_quotes = text.find('"') == std::string_view::npos;
  std::string out;
  out.reserve(text.size());
  for (std::size_t size = 1; !text.empty(); text.remove_prefix(size)) {
    const int plain = plain_at(text, quotes, double_quotes, size);
    if (plain == 0)
      out += text.substr(0, size);
    else if (plain > 0)
      out += static_cast<char>(plain);
  }
  return out;
}

std::string odd_name(std::string_view text) {
  std::size_t size = 1;
  const std::uint32_t code = text.empty() ? 0 : code_point(text, size);
  char name[12] = "";
  if (code > 0) std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(code));
  return name;
}

}  // namespace assay::spec::audit
