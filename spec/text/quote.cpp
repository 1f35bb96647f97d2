#include "spec/text/quote.hpp"

#include <algorithm>

#include "spec/text/utf8.hpp"

namespace assay::spec {

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = "\"";
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
  return out + (text.size() > longest ? "...\"" : "\"");
}

}  // namespace assay::spec
