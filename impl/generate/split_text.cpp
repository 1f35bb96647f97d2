#include "impl/generate/split_text.hpp"

#include <algorithm>

#include "impl/generate/unicode_ranges.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::generate {

namespace {
constexpr bool is_line_end(char32_t c) { return c == '\r' || c == '\n'; }

/// A text as code points, with the length of what matches at a place; 0: nothing.
class Matcher {
 public:
  Matcher(const std::vector<char32_t>& text, SplitPattern pattern) : text_(text), pattern_(pattern) {}

  /// Of the first alternative that matches, one character at least.
  std::size_t word(std::size_t at) const {
    if (const std::size_t n = contraction(at)) return n;
    if (pattern_ == SplitPattern::gpt2) {
      const std::size_t from = at + (text_[at] == ' ');
      for (const auto holds : {letter, number, other})
        if (const std::size_t n = run(from, holds)) return from - at + n;
    } else {
      if (const std::size_t n = letters_behind_any(at)) return n;
      const std::size_t digits = run(at, number);
      if (digits > 0) return std::min<std::size_t>(digits, pattern_ == SplitPattern::llama3 ? 3 : 1);
      const std::size_t from = at + (text_[at] == ' ');
      if (const std::size_t n = run(from, other)) return from - at + n + run(from + n, is_line_end);
    }
    return spaces(at);
  }

 private:
  static bool letter(char32_t c) { return is_letter(c); }
  static bool number(char32_t c) { return is_number(c); }
  static bool other(char32_t c) { return !is_space(c) && !is_letter(c) && !is_number(c); }

  template <class Holds>
  std::size_t run(std::size_t at, const Holds& holds) const {
    std::size_t n = 0;
    while (at + n < text_.size() && holds(text_[at + n])) ++n;
    return n;
  }
  char32_t lower(std::size_t at) const {
    if (at >= text_.size()) return 0;
    const char32_t c = text_[at];
    return pattern_ != SplitPattern::gpt2 && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  }
  /// 's 't 're 've 'm 'll 'd
  std::size_t contraction(std::size_t at) const {
    if (text_[at] != '\'') return 0;
    const char32_t a = lower(at + 1), b = lower(at + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
  }
  /// [^\r\n\p{L}\p{N}]?\p{L}+
  std::size_t letters_behind_any(std::size_t at) const {
    const char32_t c = text_[at];
    const bool any = !is_line_end(c) && !is_letter(c) && !is_number(c);
    const std::size_t n = run(at + any, letter);
    return n > 0 ? n + any : 0;
  }
  /// \s*[\r\n]+ where the pattern has it, \s+(?!\S), \s+
  std::size_t spaces(std::size_t at) const {
    const std::size_t n = run(at, is_space);
    if (pattern_ != SplitPattern::gpt2)
      for (std::size_t last = n; last > 0; --last)
        if (is_line_end(text_[at + last - 1])) return last;
    return n > 1 && at + n < text_.size() ? n - 1 : std::max<std::size_t>(n, 1);
  }

  const std::vector<char32_t>& text_;
  const SplitPattern pattern_;
};
}  // namespace

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(spec::utf8_length(text.substr(at)), 1);
    constexpr unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    char32_t c = static_cast<unsigned char>(text[at]) & first_bits[length];
    for (std::size_t i = 1; i < length; ++i) c = c << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
    out.push_back(c);
    at += length;
  }
  return out;
}

std::vector<std::string_view> split_text(std::string_view text, SplitPattern pattern) {
  if (text.empty()) return {};
  if (pattern == SplitPattern::none) return {text};
  const std::vector<char32_t> points = code_points(text);
  const Matcher matcher(points, pattern);
  std::vector<std::string_view> words;
  std::size_t byte = 0;
  for (std::size_t at = 0; at < points.size();) {
    const std::size_t n = matcher.word(at);
    const std::size_t begin = byte;
    for (std::size_t i = 0; i < n; ++i)
      byte += std::max<std::size_t>(spec::utf8_length(text.substr(byte)), 1);
    words.push_back(text.substr(begin, byte - begin));
    at += n;
  }
  return words;
}

}  // namespace assay::impl::generate
