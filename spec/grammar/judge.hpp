#pragma once
// Marks text that a model wrote: which sentences does the grammar accept, and which sums are right?
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/grammar/grammar.hpp"

namespace assay::spec::grammar {

/// One complete sentence of the text, without its newline.
struct Verdict {
  std::string sentence;
  bool valid;      ///< the grammar accepts it
  bool sum;        ///< has the form "A plus B is C." with A, B, C in number_words(), right or wrong
  bool sum_right;  ///< and A + B = C
};

struct Judgement {
  std::vector<Verdict> verdicts;  ///< in the order of the text
  std::int64_t sentences = 0;     ///< complete ones: pieces that end in a newline
  std::int64_t valid = 0;
  std::int64_t sums = 0;
  std::int64_t sums_right = 0;
  double valid_share() const { return share(valid, sentences); }       ///< NaN when there is no sentence
  double sums_right_share() const { return share(sums_right, sums); }  ///< NaN when there is no sum

 private:
  static double share(std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
};

/// Judges a text that begins at the start of a sentence. Bytes after the last newline are an unfinished
/// sentence and are not judged. An empty line counts as a sentence that is not valid.
Judgement judge(const Grammar& grammar, std::string_view text);

}  // namespace assay::spec::grammar
