#include "spec/text/quote.hpp"

namespace assay::spec {

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = "\"";
  for (char c : text.substr(0, longest)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > longest ? "...\"" : "\"");
}

}  // namespace assay::spec
