#include "spec/grammar/judge.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "spec/grammar/demo_grammar.hpp"

namespace assay::spec::grammar {
namespace {

std::optional<std::ptrdiff_t> number(std::string_view word) {
  const auto words = number_words();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return found - words.begin();
}

Verdict verdict(const Grammar& grammar, std::string_view line) {
  Verdict out{std::string(line.substr(0, line.size() - 1)), grammar.accepts(line), false, false};
  const std::string_view sentence = out.sentence, plus = " plus ", is = " is ";
  const std::size_t first = sentence.find(plus), second = sentence.find(is);
  if (first == sentence.npos || second == sentence.npos || second < first + plus.size() ||
      !sentence.ends_with('.'))
    return out;
  const std::size_t b = first + plus.size(), c = second + is.size();
  const auto left = number(sentence.substr(0, first));
  const auto right = number(sentence.substr(b, second - b));
  const auto answer = number(sentence.substr(c, sentence.size() - 1 - c));
  out.sum = left && right && answer;
  out.sum_right = out.sum && *left + *right == *answer;
  return out;
}

}  // namespace

Judgement judge(const Grammar& grammar, std::string_view text) {
  Judgement out;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    out.verdicts.push_back(verdict(grammar, text.substr(0, end + 1)));
    text.remove_prefix(end + 1);
    const Verdict& last = out.verdicts.back();
    ++out.sentences;
    out.valid += last.valid;
    out.sums += last.sum;
    out.sums_right += last.sum_right;
  }
  return out;
}

}  // namespace assay::spec::grammar
