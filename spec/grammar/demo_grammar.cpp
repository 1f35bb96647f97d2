#include "spec/grammar/demo_grammar.hpp"

#include <array>
#include <utility>
#include <vector>

namespace assay::spec::grammar {
namespace {

constexpr std::array<std::string_view, 19> numbers = {
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",   "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"};

// Sums add zero to five: 36 facts, each seen some 250 times in the demo's 250 steps, are learnt in them; the
// 100 facts of all digits are not.
constexpr std::size_t digits = 6;

constexpr std::array<std::string_view, 10> adjectives = {"small", "big",   "young", "quick", "brown",
                                                         "quiet", "happy", "tired", "funny", "kind"};

using Pair = std::pair<std::string_view, std::string_view>;  // singular and plural
constexpr std::array<Pair, 16> creatures = {{{"fox", "foxes"},
                                             {"bird", "birds"},
                                             {"dog", "dogs"},
                                             {"cat", "cats"},
                                             {"horse", "horses"},
                                             {"goat", "goats"},
                                             {"frog", "frogs"},
                                             {"hen", "hens"},
                                             {"girl", "girls"},
                                             {"boy", "boys"},
                                             {"farmer", "farmers"},
                                             {"baker", "bakers"},
                                             {"lion", "lions"},
                                             {"pig", "pigs"},
                                             {"king", "kings"},
                                             {"nurse", "nurses"}}};

constexpr std::array<Pair, 6> verbs_with_object = {{{"sees", "see"},
                                                    {"hears", "hear"},
                                                    {"likes", "like"},
                                                    {"follows", "follow"},
                                                    {"meets", "meet"},
                                                    {"helps", "help"}}};
constexpr std::array<Pair, 5> verbs_of_place = {
    {{"sleeps", "sleep"}, {"waits", "wait"}, {"plays", "play"}, {"sings", "sing"}, {"works", "work"}}};
constexpr Pair verb_of_food = {"eats", "eat"};

constexpr std::array<std::string_view, 8> foods = {"bread", "corn", "rice",  "soup",
                                                   "cake",  "nuts", "plums", "a pear"};
constexpr std::array<std::string_view, 8> places = {"in the garden", "in the field", "in the barn",
                                                    "in the forest", "by the river", "by the bridge",
                                                    "by the house",  "by the road"};

std::string_view form(const Pair& pair, bool plural) { return plural ? pair.second : pair.first; }

// An adjective or none, then a noun: two rules, "<name>" and "<name> noun".
void add_noun_phrase(std::vector<Rule>& rules, const std::string& name, bool plural, const std::string& after,
                     const std::string& next) {
  Rule phrase{name, {}}, noun{name + " noun", {}};
  for (const std::string_view word : adjectives)
    phrase.productions.push_back({8, std::string(word) + " ", noun.name});
  for (const Pair& creature : creatures) {
    const std::string text = std::string(form(creature, plural)) + after;
    phrase.productions.push_back(
        {5, text, next});  // 16 nouns * 5 = 10 adjectives * 8: an adjective half the time
    noun.productions.push_back({1, text, next});
  }
  rules.push_back(std::move(phrase));
  rules.push_back(std::move(noun));
}

Rule verb(const std::string& name, bool plural) {
  Rule rule{name, {{3, std::string(form(verb_of_food, plural)) + " ", "food"}}};
  for (const Pair& pair : verbs_with_object)
    rule.productions.push_back({1, std::string(form(pair, plural)) + " ", "object"});
  for (const Pair& pair : verbs_of_place)
    rule.productions.push_back({1, std::string(form(pair, plural)) + " ", "place"});
  return rule;
}

template <class Words>
Rule choice(const std::string& name, const Words& words, const std::string& next) {
  Rule rule{name, {}};
  for (const std::string_view word : words) rule.productions.push_back({1, std::string(word), next});
  return rule;
}

// "three plus " in the first rule leads to a rule of its own, which knows the answer to each second number.
void add_sums(std::vector<Rule>& rules) {
  for (std::size_t a = 0; a < digits; ++a) {
    const std::string name = std::string(numbers[a]) + " plus ";
    rules.front().productions.push_back({4, name, name});
    Rule second{name, {}};
    for (std::size_t b = 0; b < digits; ++b)
      second.productions.push_back(
          {1, std::string(numbers[b]) + " is " + std::string(numbers[a + b]) + ".\n", ""});
    rules.push_back(std::move(second));
  }
}

std::vector<Rule> rules() {
  std::vector<Rule> rules = {
      {"sentence", {{12, "the ", "subject"}, {6, "a ", "subject"}, {6, "many ", "plural subject"}}}};
  add_sums(rules);  // 6 times 4 of 48: half of the sentences
  add_noun_phrase(rules, "subject", false, " ", "verb");
  add_noun_phrase(rules, "plural subject", true, " ", "plural verb");
  rules.push_back(verb("verb", false));
  rules.push_back(verb("plural verb", true));
  rules.push_back({"object", {{1, "the ", "object phrase"}, {1, "a ", "object phrase"}}});
  add_noun_phrase(rules, "object phrase", false, "", "ending");
  rules.push_back(choice("food", foods, "ending"));
  rules.push_back(choice("place", places, "ending"));
  rules.push_back(
      {"ending", {{5, ".\n", ""}, {1, " today.\n", ""}, {1, " now.\n", ""}, {1, " again.\n", ""}}});
  return rules;
}

}  // namespace

const Grammar& demo() {
  static const Grammar grammar(rules());
  return grammar;
}

std::span<const std::string_view> number_words() { return numbers; }

}  // namespace assay::spec::grammar
