// labels: unit property
#include "spec/grammar/grammar.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/error.hpp"
#include "spec/grammar/demo_grammar.hpp"

namespace assay::spec::grammar::grammar_test {
namespace {

// Derivations of `text` from rule `rule` on, counted by trying every production: knows nothing of the
// automaton.
std::int64_t derivations(const Grammar& grammar, std::size_t rule, std::string_view text) {
  if (rule == grammar.rules().size()) return text.empty();
  std::int64_t count = 0;
  for (const Production& production : grammar.rules()[rule].productions)
    if (text.starts_with(production.text))
      count += derivations(grammar, grammar.next_rule(production), text.substr(production.text.size()));
  return count;
}

std::vector<std::string> lines(const std::string& window) {  // complete sentences, newline included
  std::vector<std::string> out;
  std::size_t begin = 1;
  for (std::size_t end = window.find('\n', begin); end != window.npos; end = window.find('\n', begin)) {
    out.push_back(window.substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  return out;
}

std::string label_of(const std::vector<Rule>& rules) {
  try {
    Grammar grammar(rules);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

// The worked example of grammar.md: "c\n" 1/2, "a\n" 3/8, "ab\n" 1/8.
const std::vector<Rule> example = {{"s", {{1, "c\n", ""}, {1, "a", "t"}}},
                                   {"t", {{3, "\n", ""}, {1, "b\n", ""}}}};

TEST(GrammarSpec, C1RejectsATextThatIsAPrefixOfAnother) {
  EXPECT_EQ(label_of(example), "accepted");
  EXPECT_EQ(label_of({{"s", {{1, "a", "t"}, {1, "ab\n", ""}}}, {"t", {{1, "\n", ""}}}}), "grammar_c1");
  EXPECT_EQ(label_of({{"s", {{1, "a\n", ""}, {2, "a\n", ""}}}}), "grammar_c1");
}

TEST(GrammarSpec, C2RejectsEmptyRulesTextsAndWeights) {
  EXPECT_EQ(label_of({}), "grammar_c2");
  EXPECT_EQ(label_of({{"s", {}}}), "grammar_c2");
  EXPECT_EQ(label_of({{"s", {{0, "a\n", ""}}}}), "grammar_c2");
  EXPECT_EQ(label_of({{"s", {{1, "", "t"}}}, {"t", {{1, "\n", ""}}}}), "grammar_c2");
}

TEST(GrammarSpec, C3RejectsARuleThatLeadsBackOrNowhere) {
  EXPECT_EQ(label_of({{"s", {{1, "a", "s"}, {1, "\n", ""}}}}), "grammar_c3");
  EXPECT_EQ(label_of({{"s", {{1, "a", "t"}}}}), "grammar_c3");
  EXPECT_EQ(label_of({{"s", {{1, "a", "t"}}}, {"t", {{1, "\n", ""}}}, {"t", {{1, "b\n", ""}}}}),
            "grammar_c3");
}

TEST(GrammarSpec, C4RejectsANewlineThatDoesNotEndASentence) {
  EXPECT_EQ(label_of({{"s", {{1, "a", ""}}}}), "grammar_c4");
  EXPECT_EQ(label_of({{"s", {{1, "a\nb\n", ""}}}}), "grammar_c4");
  EXPECT_EQ(label_of({{"s", {{1, "a\n", "t"}}}, {"t", {{1, "\n", ""}}}}), "grammar_c4");
}

TEST(GrammarSpec, C5RejectsAWindowOutsideTheDomain) {
  EXPECT_NO_THROW(demo().window(1, (std::uint64_t{1} << 40) - 1, 1));
  for (std::int64_t bytes : {std::int64_t{-1}, std::int64_t{0}, (std::int64_t{1} << 24) + 1})
    EXPECT_THROW(demo().window(1, 0, bytes), SpecError) << bytes;
  EXPECT_THROW(demo().window(1, std::uint64_t{1} << 40, 2), SpecError);
}

TEST(GrammarSpec, ExampleHasTheProbabilitiesWorkedByHand) {
  const Grammar grammar(example);
  EXPECT_NEAR(grammar.log_probability("c\n"), std::log(1.0 / 2), 1e-15);
  EXPECT_NEAR(grammar.log_probability("a\n"), std::log(3.0 / 8), 1e-15);
  EXPECT_NEAR(grammar.log_probability("ab\n"), std::log(1.0 / 8), 1e-15);
  for (const char* text : {"", "\n", "a", "ab", "c", "cb\n", "abb\n", "c\na\n"})
    EXPECT_FALSE(grammar.accepts(text));
  EXPECT_EQ(grammar.byte_losses("ax\n"), (std::vector<double>{std::log(2.0), INFINITY, INFINITY}));
}

TEST(GrammarSpec, AcceptsEveryGeneratedSentenceWithOneDerivation) {
  std::int64_t checked = 0;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    for (const std::string& sentence : lines(demo().window(7, sample, 129))) {
      ASSERT_TRUE(demo().accepts(sentence)) << sentence;
      ASSERT_EQ(derivations(demo(), 0, sentence), 1) << sentence;
      ++checked;
    }
  }
  EXPECT_GT(checked, 800);
}

// A word of one sentence put in the place of a word of another: about one time in seven a sentence comes out.
RC_GTEST_PROP(GrammarSpec, ASwappedWordIsAcceptedOnlyIfThereIsADerivation, ()) {
  const auto first_of = [](std::uint64_t sample) { return lines(demo().window(3, sample, 257)).front(); };
  const auto word_of = [](const std::string& sentence) {
    const auto at = *rc::gen::inRange<std::size_t>(0, sentence.size());
    const std::size_t begin = sentence.find_last_of(" ", at) + 1;
    return std::pair(begin, std::min(sentence.find_first_of(" .\n", begin), sentence.size()) - begin);
  };
  const auto samples = rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40);
  const std::string donor = first_of(*samples), sentence = first_of(*samples);
  const auto [from, from_size] = word_of(donor);
  const auto [to, to_size] = word_of(sentence);
  const std::string changed = std::string(sentence).replace(to, to_size, donor.substr(from, from_size));
  RC_TAG(demo().accepts(changed) ? "a sentence" : "rejected");
  RC_ASSERT(demo().accepts(changed) == (derivations(demo(), 0, changed) == 1));
}

RC_GTEST_PROP(GrammarSpec, AChangedByteIsAcceptedOnlyIfThereIsADerivation, ()) {
  const auto sample = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40);
  std::string sentence = lines(demo().window(3, sample, 257)).front();
  const auto at = *rc::gen::inRange<std::size_t>(0, sentence.size());
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      sentence[at] = *rc::gen::arbitrary<char>();
      break;
    case 1:
      sentence.erase(at, 1);
      break;
    default:
      sentence.insert(at, 1, *rc::gen::inRange<char>(' ', 'z'));
      break;
  }
  RC_ASSERT(demo().accepts(sentence) == (derivations(demo(), 0, sentence) == 1));
}

TEST(GrammarSpec, DemoRejectsWrongSumsAgreementObjectsAndMarks) {
  for (const char* text : {"four plus five is nine.\n", "the quick fox follows a bird today.\n",
                           "many happy girls eat a pear.\n", "a king sleeps in the barn now.\n"})
    EXPECT_TRUE(demo().accepts(text)) << text;
  for (const char* text :
       {"four plus five is eight.\n", "six plus one is seven.\n", "many fox follow a bird.\n",
        "the foxes follow a bird.\n", "many foxes follows a bird.\n", "the fox eats in the barn.\n",
        "the fox sleeps a pear.\n", "the fox eats rice\n", "The fox eats rice.\n", "the fox eats rice. \n",
        "the  fox eats rice.\n", "the fox eats rice.", "\n"})
    EXPECT_FALSE(demo().accepts(text)) << text;
}

TEST(GrammarSpec, WindowsAreAPureFunctionOfSeedAndSample) {
  const std::string window = demo().window(1, 5, 60);
  EXPECT_EQ(window, "\nthree plus two is five.\nfour plus two is six.\nzero plus zer");
  EXPECT_EQ(demo().window(1, 5, 200).substr(0, 60), window);  // a longer window continues the same text
  EXPECT_NE(demo().window(2, 5, 60), window);
  EXPECT_NE(demo().window(1, 6, 60), window);
  EXPECT_EQ(demo().window(1, 5, 1), "\n");
}

TEST(GrammarSpec, EveryStateSharesItsWeightAmongItsBytes) {
  for (const State& state : demo().states()) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < state.arcs.size(); ++i) {
      sum += state.arcs[i].weight;
      if (i > 0) {
        EXPECT_LT(state.arcs[i - 1].byte, state.arcs[i].byte);
      }
      EXPECT_EQ(state.arcs[i].byte == '\n', state.arcs[i].target == 0);
    }
    EXPECT_EQ(sum, state.weight);
    EXPECT_GT(state.weight, 0u);
  }
}

}  // namespace
}  // namespace assay::spec::grammar::grammar_test
