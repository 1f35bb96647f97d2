#include "spec/audit/readers/odd_characters.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace assay::spec::audit {
namespace {

/// Set in eight bytes of which one is not of ASCII.
constexpr std::uint64_t high_bits = 0x8080808080808080;

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
  if (code >= 0xff01 && code <= 0xff5e) return static_cast<int>(code - 0xff01 + '!');
  return 0;
}

}  // namespace

bool may_be_odd(std::string_view text) {
  const char *at = text.data(), *const end = at + text.size();
  for (; end - at >= 8; at += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, at, 8);
    if ((eight & high_bits) != 0) return true;
  }
  if (std::any_of(at, end, [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) return true;
  for (std::size_t sign = 0; (sign = text.find('&', sign)) != std::string_view::npos; ++sign)
    for (const auto& [name, plain] : entities)
      if (text.substr(sign).starts_with(name)) return true;
  return false;
}

std::string with_plain_characters(std::string_view text) {
  const bool quotes = text.find('\'') == std::string_view::npos,
             double_quotes = text.find('"') == std::string_view::npos;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t size = 1;
    int plain = 0;
    if (static_cast<unsigned char>(text[0]) >= 0x80) {
      plain = plain_of(code_point(text, size), quotes, double_quotes);
    } else if (text[0] == '&') {
      for (const auto& [name, sign] : entities)
        if (text.starts_with(name)) plain = static_cast<unsigned char>(sign), size = name.size();
    }
    if (plain == 0)
      out += text.substr(0, size);
    else if (plain > 0)
      out += static_cast<char>(plain);
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace assay::spec::audit
