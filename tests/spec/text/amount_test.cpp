// labels: unit property
#include "spec/text/amount.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
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
  for (const char* text :
       {"",   "B",  "-1",   "+1",    " 1",     "1 ",  "82BB", "82 B", "1e",  "nan",  "inf",     "0x10",
        "1,", ",1", "1,,2", "1e999", "1e308T", "12x", ".5",   "82%",  "1,5", "1,50", "12,3456", "0,003"})
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

TEST(WholeNumber, FormsThatPeopleType) {
  const std::pair<const char*, std::int64_t> forms[] = {{"0", 0},
                                                        {"1000", 1000},
                                                        {"1_000", 1000},
                                                        {"4,194,304", 4194304},
                                                        {"1e9", 1'000'000'000},
                                                        {"2.5E+3", 2500},
                                                        {"12000e-3", 12},
                                                        {"64k", 64'000},
                                                        {"1.5M", 1'500'000},
                                                        {"2b", 2'000'000'000},
                                                        {"3T", 3'000'000'000'000},
                                                        {"64Ki", 65'536},
                                                        {"1.5Mi", 1'572'864},
                                                        {"2Gi", std::int64_t{2} << 30},
                                                        {"0.0009765625Ki", 1},
                                                        {"-1", -1},
                                                        {"+5", 5},
                                                        {"9223372036854775807", INT64_MAX},
                                                        {"-9223372036854775808", INT64_MIN},
                                                        {"0e99", 0}};
  for (const auto& [text, number] : forms) EXPECT_EQ(whole_number(text), number) << text;
  for (const char* text : {"",
                           "-",
                           "k",
                           "Ki",
                           "i",
                           "1.5",
                           "0.5",
                           "1.",
                           ".5",
                           "1e",
                           "1e-1",
                           "1__0",
                           "_1",
                           "1_",
                           "1 000",
                           " 1",
                           "0x10",
                           "1kk",
                           "1KiB",
                           "8192Pi",
                           "1e400",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "1e19",
                           "nan"})
    EXPECT_FALSE(whole_number(text)) << text;
  EXPECT_FALSE(whole_number(std::string(1'000'000, '9')));
}

RC_GTEST_PROP(WholeNumberProperty, EveryIntegerIsReadAsWritten, (std::int64_t number)) {
  RC_ASSERT(whole_number(std::to_string(number)) == number);
}

/// A mantissa, an exponent and a letter against the product.
RC_GTEST_PROP(WholeNumberProperty, ALetterIsAFactor, ()) {
  const auto mantissa = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const auto decimals = *rc::gen::inRange(0, 4);
  using Letters = std::pair<std::string, std::int64_t>;
  const auto [letters, factor] =
      *rc::gen::element(Letters("", 1), Letters("k", 1'000), Letters("M", 1'000'000),
                        Letters("B", 1'000'000'000), Letters("Ki", 1 << 10), Letters("Mi", 1 << 20));
  std::int64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  std::string text = std::to_string(mantissa);
  text.insert(0, static_cast<std::size_t>(std::max<std::int64_t>(0, decimals + 1 - std::ssize(text))), '0');
  if (decimals > 0) text.insert(text.size() - static_cast<std::size_t>(decimals), ".");
  const std::int64_t product = mantissa * factor;
  RC_ASSERT(whole_number(text + letters) ==
            (product % scale == 0 ? std::optional(product / scale) : std::nullopt));
}

RC_GTEST_PROP(WholeNumberProperty, AnyTextIsANumberOrNothing, (const std::string& text)) {
  if (const auto number = whole_number(text)) RC_ASSERT(std::abs(static_cast<double>(*number)) <= 0x1p63);
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
