#include "spec/text/quote.hpp"

#include <algorithm>

#include "spec/text/utf8.hpp"

namespace assay::spec {

namespace {
/// At most `longest` bytes of `text` with '?' for each control character and each byte that is no UTF-8.
std::string printable(std::string_view text, std::size_t longest) {
  std::string out;
  for (std::size_t at = 0; at < text.size() && at < longest;) {
    const std::size_t length = utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = byte < 0x20 || byte == 0x7f ||
                         (length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
    if (length > 0 && at + length > longest) break;
    if (length == 0 || control)
      out += '?';
    else
      out.append(text.substr(at, length));
    at += std::max<std::size_t>(1, length);
  }
  return out;
}
}  // namespace

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  return "\"" + printable(text, longest) + (text.size() > longest ? "...\"" : "\"");
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char each : printable(text, text.size()))
    out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return out + "'";
}

}  // namespace assay::spec
