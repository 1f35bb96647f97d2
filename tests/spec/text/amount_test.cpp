// labels: unit property
#include "spec/text/amount.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

namespace assay::spec::amount_test {
namespace {

TEST(Amount, FormsThatPeopleType) {
  EXPECT_EQ(amount("82B"), 82e9);
  EXPECT_EQ(amount("82b"), 82e9);
  EXPECT_EQ(amount("1.5T"), 1.5e12);
  EXPECT_EQ(amount("300M"), 3e8);
  EXPECT_EQ(amount("4k"), 4000);
  EXPECT_EQ(amount("2G"), 2e9);
  EXPECT_EQ(amount("82e9"), 82e9);
  EXPECT_EQ(amount("4,194,304"), 4194304);
  EXPECT_EQ(amount("4_194_304"), 4194304);
  EXPECT_EQ(amount("0"), 0);
}

TEST(Amount, NothingElse) {
  for (const char* text : {"",    "B",    "-1", "+1", " 1",   "1 ",    "82BB",   "82 B", "1e", "nan",
                           "inf", "0x10", "1,", ",1", "1,,2", "1e999", "1e308T", "12x",  ".5", "82%"})
    EXPECT_FALSE(amount(text)) << text;
  EXPECT_FALSE(amount(std::string(1000000, '9')));
}

TEST(Amount, SharesWithAndWithoutPercent) {
  EXPECT_EQ(fraction("40%"), 0.4);
  EXPECT_EQ(fraction("37.5 %"), 0.375);
  EXPECT_EQ(fraction("0.4"), 0.4);
  EXPECT_EQ(fraction("1"), 1);
  EXPECT_EQ(fraction("250%"), 2.5);
  for (const char* text : {"", "%", "40", "1.01", "-1%", "nan", "40%%", "40 % "})
    EXPECT_FALSE(fraction(text)) << text;
}

RC_GTEST_PROP(AmountProperty, ReadsWhatWasWritten, ()) {
  const auto n = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 53);
  RC_ASSERT(amount(std::to_string(n)) == static_cast<double>(n));
}

RC_GTEST_PROP(AmountProperty, IsFiniteAndNotNegativeOrNothing, (const std::string& text)) {
  for (const auto& value : {amount(text), fraction(text)})
    RC_ASSERT(!value || (std::isfinite(*value) && *value >= 0));
}

TEST(Amount, ALetterIsItsPowerOfTen) {
  for (const auto& [letters, factor] : {std::pair{"kK", 1e3}, {"mM", 1e6}, {"bBgG", 1e9}, {"tT", 1e12}})
    for (const char* letter = letters; *letter; ++letter) EXPECT_EQ(magnitude(*letter), factor) << *letter;
  for (const char letter : {'p', 'e', '5', ' ', '\0'}) EXPECT_FALSE(magnitude(letter)) << letter;
}

}  // namespace
}  // namespace assay::spec::amount_test
