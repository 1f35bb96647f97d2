#include "spec/text/quote.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "spec/text/utf8.hpp"

namespace assay::spec {
namespace {

void append_hexadecimal(std::string& out, char letter, std::uint32_t number, int digits) {
  out += {'\\', letter};
  while (digits-- > 0) out += "0123456789abcdef"[number >> (4 * digits) & 15];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const char32_t point = code_point(text.substr(at, length));
    if (length == 0)
      append_hexadecimal(out, 'x', byte, 2);
    else if (byte == '\n' || byte == '\t' || byte == '\r')
      out += {'\\', byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r'};
    else if (is_control(point) && point < 0x80)
      append_hexadecimal(out, 'x', point, 2);
    else if (is_control(point) || is_unseen(point))
      append_hexadecimal(out, point > 0xFFFF ? 'U' : 'u', point, point > 0xFFFF ? 8 : 4);
    else
      out.append(text.substr(at, length));
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string message_line(std::string_view text) {
  constexpr std::size_t longest_word = 1024, kept = 200, longest = 3900, behind = 1000;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const bool cut = end - at > longest_word;
    out += printable(text.substr(at, cut ? kept : end - at)) + (cut ? "..." : "");
    if (end < text.size()) out += printable(text.substr(end, 1));
    at = end + 1;
  }
  // What to do next stands at the end.
  if (out.size() > longest) out.replace(longest - behind, out.size() - longest + 5, " ... ");
  return out;
}

std::string message_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\n" : "") + message_line(lines[i]);
  return out;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char each : text)
    if (each == '\n')
      lines.emplace_back();
    else
      lines.back() += each;
  return lines;
}

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::size_t end = 0;  // behind the last character that is shown whole
  for (std::size_t at = 0; at <= longest && at <= text.size();) {
    end = at;
    if (at == text.size()) break;
    at += std::max<std::size_t>(1, utf8_length(text.substr(at)));
  }
  return '"' + printable(text.substr(0, end)) + (end < text.size() ? "...\"" : "\"");
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char each : printable(text)) out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return out + "'";
}

}  // namespace assay::spec
