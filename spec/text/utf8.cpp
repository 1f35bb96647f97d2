#include "spec/text/utf8.hpp"

#include <algorithm>

namespace assay::spec {
namespace {

bool between(std::string_view text, std::size_t at, unsigned low, unsigned high) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= low && byte <= high;
}

/// Bytes of a character by its first; 0: it begins none.
std::size_t length_by(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

// RFC 3629, section 4, syntax of UTF-8 byte sequences.
std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return between(text, 1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return between(text, 1, low, high) && between(text, 2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return between(text, 1, low, high) && between(text, 2, 0x80, 0xBF) && between(text, 3, 0x80, 0xBF) ? 4
                                                                                                       : 0;
  }
  return 0;
}

std::size_t ill_formed_length(std::string_view text) {
  // Whether the bytes so far begin a character: some bytes behind them make it whole.
  const auto begins = [&](std::size_t count) {
    std::string whole(text.substr(0, count));
    const std::size_t length = length_by(static_cast<unsigned char>(whole[0]));
    if (length <= count) return false;
    whole.resize(length, '\xBF');
    if (utf8_length(whole) > 0) return true;
    std::fill(whole.begin() + static_cast<std::ptrdiff_t>(count), whole.end(), '\x80');
    return utf8_length(whole) > 0;
  };
  std::size_t count = 1;
  while (count < text.size() && begins(count + 1)) ++count;
  return count;
}

bool begins_character(std::string_view text) {
  return !text.empty() && utf8_length(text) == 0 && ill_formed_length(text) == text.size() &&
         length_by(static_cast<unsigned char>(text[0])) > text.size();
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

char32_t code_point(std::string_view text) {
  if (text.size() < 2) return text.empty() ? 0 : static_cast<unsigned char>(text[0]);
  char32_t point = static_cast<unsigned char>(text[0]) & (0x7Fu >> text.size());
  for (const char next : text.substr(1)) point = point << 6 | (static_cast<unsigned char>(next) & 0x3Fu);
  return point;
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

bool is_unseen(char32_t point) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range ranges[] = {{0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E},
                              {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                              {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0001, 0xE007F}};
  for (const Range& range : ranges)
    if (point >= range.first && point <= range.last) return true;
  return false;
}

}  // namespace assay::spec
