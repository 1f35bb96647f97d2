#include "spec/grammar/entropy.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec::grammar {

Entropy entropy(const Grammar& grammar) {
  const std::vector<Rule>& rules = grammar.rules();
  // One entry a rule, and a last one of zeros for "the sentence is complete". Rules lead to later rules only.
  std::vector<double> nats(rules.size() + 1, 0.0), bytes(rules.size() + 1, 0.0);
  for (std::size_t r = rules.size(); r-- > 0;) {
    double total = 0;
    for (const Production& production : rules[r].productions) total += production.weight;
    for (const Production& production : rules[r].productions) {
      const double p = production.weight / total;
      const std::size_t next = grammar.next_rule(production);
      nats[r] += p * (-std::log(p) + nats[next]);
      bytes[r] += p * (static_cast<double>(production.text.size()) + bytes[next]);
    }
  }
  return {nats[0], bytes[0], nats[0] / bytes[0]};
}

namespace {
// Of the event "the automaton is in this state": its probability, and the loss so far and its square,
// averaged over that event (zero outside it).
struct Moments {
  double probability = 0, loss = 0, square = 0;
};

std::vector<Moments> next_byte(const std::vector<State>& states, const std::vector<Moments>& now) {
  std::vector<Moments> then(states.size());
  for (std::size_t s = 0; s < states.size(); ++s) {
    if (now[s].probability == 0) continue;
    for (const State::Arc& arc : states[s].arcs) {
      const double p = static_cast<double>(arc.weight) / static_cast<double>(states[s].weight);
      const double loss = -std::log(p);
      Moments& target = then[arc.target];
      target.probability += p * now[s].probability;
      target.loss += p * (now[s].loss + loss * now[s].probability);
      target.square += p * (now[s].square + 2 * loss * now[s].loss + loss * loss * now[s].probability);
    }
  }
  return then;
}
}  // namespace

WindowFloor window_floor(const Grammar& grammar, std::int64_t T) {
  // window_floor_c1
  require(T >= 1, "window_floor_c1", [&] { return "T=" + std::to_string(T); });
  std::vector<Moments> moments(grammar.states().size());
  moments[0].probability = 1;
  for (std::int64_t t = 1; t <= T; ++t) moments = next_byte(grammar.states(), moments);

  double loss = 0, square = 0;
  for (const Moments& m : moments) {
    loss += m.loss;
    square += m.square;
  }
  const auto length = static_cast<double>(T);
  return {loss / length, std::sqrt(std::max(0.0, square - loss * loss)) / length};
}

}  // namespace assay::spec::grammar
