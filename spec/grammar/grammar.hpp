#pragma once
// A prefix-free right-linear grammar over bytes: every sentence has one derivation, so probabilities and
// entropies are exact. Definitions, constraints and a worked example: spec/grammar/grammar.md.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec::grammar {

/// One alternative of a rule: write `text`, go on with the rule named `next` (empty: the sentence is
/// complete). Its probability is `weight` over the sum of the weights of its rule.
struct Production {
  std::uint32_t weight;
  std::string text;
  std::string next;
};

struct Rule {
  std::string name;
  std::vector<Production> productions;
};

/// The distribution of the next byte at one place of a sentence. `arcs` are sorted by byte, their weights sum
/// to `weight`, P(byte) = arc.weight / weight. `target` indexes Grammar::states().
struct State {
  struct Arc {
    unsigned char byte;
    std::uint64_t weight;
    std::size_t target;
  };
  std::vector<Arc> arcs;
  std::uint64_t weight = 0;
};

/// A sentence is what the first rule derives; its last byte, and only its last byte, is a newline.
/// A text is a concatenation of independent sentences.
class Grammar {
 public:
  /// Errors: SpecError grammar_c1 (a production's text is a prefix of another one's of the same rule),
  /// grammar_c2 (a rule without productions, a weight of 0, an empty text), grammar_c3 (`next` is not a later
  /// rule, or a rule name occurs twice), grammar_c4 (a newline elsewhere than at the end of a sentence, or
  /// missing there).
  explicit Grammar(std::vector<Rule> rules);

  const std::vector<Rule>& rules() const { return rules_; }

  /// The deterministic automaton of the grammar: state 0 is the start of a sentence, a newline leads back to
  /// it. The bytes of a text determine the state after them (grammar.md, "One derivation").
  const std::vector<State>& states() const { return states_; }

  /// Index in rules() of a production's `next`; rules().size() when the sentence is complete.
  std::size_t next_rule(const Production& production) const;

  /// Loss of each byte under the true distribution, -log P(byte | bytes before it) [nat], for a text that
  /// begins at the start of a sentence. Infinite from the first byte on that the grammar cannot write.
  std::vector<double> byte_losses(std::string_view text) const;

  /// Natural logarithm of the probability of one complete sentence, newline included; -infinity if there is
  /// none.
  double log_probability(std::string_view sentence) const;

  /// Whether `sentence` (newline included) is one complete sentence of the grammar.
  bool accepts(std::string_view sentence) const;

  /// One training window of `bytes` bytes: a newline (the end of an imagined sentence before it), then
  /// sentences, the last one cut. A pure function of (seed, sample). Domain: 1 <= bytes <= 2^24, sample <
  /// 2^40. Errors: SpecError grammar_c5 outside the domain.
  std::string window(std::uint64_t seed, std::uint64_t sample, std::int64_t bytes) const;

 private:
  std::vector<Rule> rules_;
  std::vector<State> states_;
  std::vector<std::uint64_t> rule_weights_;
};

}  // namespace assay::spec::grammar
