#include "spec/audit/readers/last_part.hpp"

#include <algorithm>
#include <cctype>

namespace assay::spec::audit {
namespace {

constexpr std::string_view blank_or_tab = " \t";

bool has_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

}  // namespace

bool closes_line(std::string_view line) {
  return line.empty() || line.ends_with("--") || line.ends_with("==") ||
         std::string_view("|)]}%+*").find(line.back()) != std::string_view::npos;
}

bool number_may_go_on(std::string_view text) {
  const std::size_t last = text.find_last_not_of(blank_or_tab);
  if (last == std::string_view::npos) return false;
  if (text[last] == ':' || text[last] == '=') return true;
  if (last + 1 != text.size()) return false;
  // "5058", "1.", "3.2e-", "75.14Gi": a number, or its unit.
  if (std::isalnum(static_cast<unsigned char>(text[last])) == 0 &&
      std::string_view(".,-+").find(text[last]) == std::string_view::npos)
    return false;
  const std::size_t word = text.find_last_of(" \t:=|([") + 1;
  const bool sign = word < text.size() && (text[word] == '-' || text[word] == '+');
  return has_digit_at(text, word + sign);
}

std::string_view without_last_part(std::string_view text) {
  if (const std::size_t bar = text.rfind('|'); bar != std::string_view::npos) return text.substr(0, bar + 1);
  const auto word_at = [&](std::size_t at) {  // where the word begins that `at` is in
    const std::size_t blank = text.substr(0, at).find_last_of(blank_or_tab);
    return blank == std::string_view::npos ? 0 : blank;
  };
  const std::size_t comma = text.rfind(", "), name = text.find_last_of(":=");
  if (name == std::string_view::npos && comma == std::string_view::npos)
    return text.substr(0, word_at(std::min(text.find_last_not_of(blank_or_tab), text.size())));
  const std::size_t named = name == std::string_view::npos ? 0 : word_at(name);
  return text.substr(0, comma == std::string_view::npos ? named : std::max(comma, named));
}

bool ends_in_ellipsis(std::string_view text) {
  constexpr std::string_view ellipsis = "\xe2\x80\xa6";
  const std::size_t size = text.size();
  while (text.ends_with(ellipsis)) text.remove_suffix(ellipsis.size());
  if (text.size() == size && !text.ends_with("...")) return false;
  while (text.ends_with('.')) text.remove_suffix(1);
  return number_may_go_on(text);
}

}  // namespace assay::spec::audit
