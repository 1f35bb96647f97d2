#include "spec/grammar/grammar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "spec/error.hpp"
#include "spec/random/philox.hpp"

namespace assay::spec::grammar {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string place(const Rule& rule, const Production& production) {
  return "rule '" + rule.name + "', text '" + production.text + "'";
}

void check_production(const Rule& rule, const Production& production) {
  // grammar_c2
  require(production.weight > 0 && !production.text.empty(), "grammar_c2",
          [&] { return place(rule, production) + ", weight " + std::to_string(production.weight); });
  // grammar_c4
  const std::size_t newline = production.text.find('\n');
  const std::size_t expected = production.next.empty() ? production.text.size() - 1 : std::string::npos;
  require(newline == expected, "grammar_c4", [&] {
    return place(rule, production) + ": a newline must end the sentence and stand nowhere else";
  });
}

// In sorted order a prefix stands directly before the texts that extend it, or before another such text.
void check_prefix_free(const Rule& rule) {
  std::vector<std::string> texts;
  for (const Production& production : rule.productions) texts.push_back(production.text);
  std::sort(texts.begin(), texts.end());
  for (std::size_t i = 1; i < texts.size(); ++i) {
    // grammar_c1
    require(!texts[i].starts_with(texts[i - 1]), "grammar_c1", [&] {
      return "rule '" + rule.name + "': '" + texts[i - 1] + "' is a prefix of '" + texts[i] + "'";
    });
  }
}

/// Builds the trie of every rule; the last byte of a production leads to the root of the next rule's trie.
class Builder {
 public:
  explicit Builder(const std::vector<Rule>& rules) : states_(rules.size()) {}

  void add(std::size_t rule, const Production& production, std::size_t next_root) {
    std::size_t state = rule;
    for (std::size_t i = 0; i < production.text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(production.text[i]);
      auto [entry, added] = states_[state].try_emplace(byte, Edge{0, next_root});
      entry->second.weight += production.weight;
      if (i + 1 == production.text.size()) return;
      if (added) {
        entry->second.target = states_.size();
        state = states_.size();
        states_.emplace_back();
      } else {
        state = entry->second.target;
      }
    }
  }

  std::vector<State> states() const {
    std::vector<State> states(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) {
      for (const auto& [byte, edge] : states_[i]) {
        states[i].arcs.push_back({byte, edge.weight, edge.target});
        states[i].weight += edge.weight;
      }
    }
    return states;
  }

 private:
  struct Edge {
    std::uint64_t weight;
    std::size_t target;
  };
  std::vector<std::map<unsigned char, Edge>> states_;  // the first ones are the roots, in rule order
};

}  // namespace

Grammar::Grammar(std::vector<Rule> rules) : rules_(std::move(rules)) {
  Builder builder(rules_);
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    const Rule& rule = rules_[r];
    // grammar_c2
    require(!rule.productions.empty(), "grammar_c2", [&] { return "rule '" + rule.name + "' is empty"; });
    std::uint64_t total = 0;
    for (const Production& production : rule.productions) {
      check_production(rule, production);
      const std::size_t next = next_rule(production);
      // grammar_c3
      require(next > r, "grammar_c3",
              [&] { return place(rule, production) + ": '" + production.next + "' is not a later rule"; });
      total += production.weight;
    }
    check_prefix_free(rule);
    for (const Production& production : rule.productions) {
      const std::size_t next = next_rule(production);
      builder.add(r, production, next == rules_.size() ? 0 : next);
    }
    rule_weights_.push_back(total);
  }
  // grammar_c2
  require(!rules_.empty(), "grammar_c2", [] { return std::string("a grammar needs at least one rule"); });
  states_ = builder.states();
}

std::size_t Grammar::next_rule(const Production& production) const {
  if (production.next.empty()) return rules_.size();
  const auto named = [&](const Rule& rule) { return rule.name == production.next; };
  const auto found = std::find_if(rules_.begin(), rules_.end(), named);
  // grammar_c3
  require(found != rules_.end() && std::find_if(found + 1, rules_.end(), named) == rules_.end(), "grammar_c3",
          [&] { return "'" + production.next + "' does not name exactly one rule"; });
  return static_cast<std::size_t>(found - rules_.begin());
}

std::vector<double> Grammar::byte_losses(std::string_view text) const {
  std::vector<double> losses(text.size(), infinity);
  std::size_t state = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto& arcs = states_[state].arcs;
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto arc =
        std::find_if(arcs.begin(), arcs.end(), [&](const State::Arc& a) { return a.byte == byte; });
    if (arc == arcs.end()) break;
    const auto weight = static_cast<double>(states_[state].weight);
    losses[i] = std::log(weight / static_cast<double>(arc->weight));
    state = arc->target;
  }
  return losses;
}

double Grammar::log_probability(std::string_view sentence) const {
  if (sentence.empty() || sentence.find('\n') != sentence.size() - 1) return -infinity;
  double sum = 0;
  for (const double loss : byte_losses(sentence)) sum += loss;
  return -sum;
}

bool Grammar::accepts(std::string_view sentence) const { return log_probability(sentence) > -infinity; }

std::string Grammar::window(std::uint64_t seed, std::uint64_t sample, std::int64_t bytes) const {
  constexpr int choice_bits = 24;  // a production writes at least one byte, so choices never outnumber bytes
  // grammar_c5
  require(bytes >= 1 && bytes <= std::int64_t{1} << choice_bits && sample < std::uint64_t{1} << 40,
          "grammar_c5",
          [&] { return "bytes=" + std::to_string(bytes) + ", sample=" + std::to_string(sample); });
  const random::Stream stream(seed, random::Site::grammar, 0);
  std::string text = "\n";
  std::size_t rule = 0;
  for (std::uint64_t index = sample << choice_bits; text.size() < static_cast<std::size_t>(bytes); ++index) {
    std::uint64_t drawn = stream.below(index, rule_weights_[rule]);
    const Production* production = rules_[rule].productions.data();
    for (; drawn >= production->weight; ++production) drawn -= production->weight;
    text += production->text;
    rule = production->next.empty() ? 0 : next_rule(*production);
  }
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

}  // namespace assay::spec::grammar
