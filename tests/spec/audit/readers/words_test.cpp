// labels: unit property
// Words looked for in one pass are those that are found one by one.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "spec/audit/readers/words.hpp"

namespace assay::spec::audit::words_test {
namespace {

TEST(WordsSpec, WordsAreFoundAtAnyPlace) {
  const Words words({"iteration", "step:", " ..", "saving checkpoint at ", "aaa"});
  for (std::size_t before = 0; before < 9; ++before) {
    const std::string front(before, '#');
    EXPECT_EQ(words.in(front + "iteration"), 1U) << before;
    EXPECT_EQ(words.in(front + "saving checkpoint at iteration"), 9U) << before;
    EXPECT_EQ(words.in(front + "step: ..."), 6U) << before;
    EXPECT_EQ(words.in(front + "aaaa"), 16U) << before;
  }
  EXPECT_EQ(words.in(""), 0U);
  EXPECT_EQ(words.in("iteratio"), 0U);
  EXPECT_EQ(words.in("teration"), 0U);
  EXPECT_TRUE(words.any_in("at last: step:"));
  EXPECT_FALSE(words.any_in("at last: step"));
}

TEST(WordsSpec, WordsThatCannotBeLookedForAreRefused) {
  EXPECT_THROW(Words({"ab"}), std::logic_error);
  EXPECT_THROW(Words(std::vector<std::string_view>(65, "abc")), std::logic_error);
  EXPECT_NO_THROW(Words(std::vector<std::string_view>(64, "abc")));
}

RC_GTEST_PROP(WordsSpec, WordsFoundInOnePassAreThoseFoundOneByOne, ()) {
  // Few letters, so that words stand in the text, in one another and over one another.
  const auto letters = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\xff ")));
  const auto count = *rc::gen::inRange<std::size_t>(1, 65);
  std::vector<std::string> drawn;
  while (drawn.size() < count)
    drawn.push_back(*rc::gen::elementOf(std::string("ab ")) + std::string("b") + 'a' +
                    (*letters).substr(0, 150));
  const Words words({drawn.begin(), drawn.end()});
  const std::string text = *letters + drawn[*rc::gen::inRange<std::size_t>(0, count)] + *letters;
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (text.find(drawn[i]) != std::string::npos) expected |= std::uint64_t{1} << i;
  RC_ASSERT(words.in(text) == expected);
}

}  // namespace
}  // namespace assay::spec::audit::words_test
