#pragma once
// How tokenizers cut a text into the words that they merge bytes within.
#include <string>
#include <string_view>
#include <vector>

namespace assay::impl::generate {

/// Patterns of published tokenizers, written out: none has regular expressions of Unicode.
enum class SplitPattern {
  none,    ///< a text is one word
  gpt2,    ///< of GPT-2, GPT-NeoX, OLMo
  llama3,  ///< numbers in groups of three
  qwen2    ///< each digit apart
};

/// The pattern that a tokenizer's file states by this regular expression. Errors: none of them, empty.
struct NamedPattern {
  std::string_view regex;
  SplitPattern pattern;
};
inline constexpr NamedPattern known_patterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SplitPattern::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::qwen2}};

/// The words of a text of well-formed UTF-8, which together are the text.
std::vector<std::string_view> split_text(std::string_view text, SplitPattern pattern);

/// Code points of well-formed UTF-8.
std::vector<char32_t> code_points(std::string_view text);

}  // namespace assay::impl::generate
