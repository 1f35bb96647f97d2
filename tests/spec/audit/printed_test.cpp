// labels: unit property
#include "spec/audit/printed.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace assay::spec::audit::printed_test {
namespace {

TEST(PrintedSpec, RoundedNumbersHoldHalfAUnitToEitherSide) {
  const auto mfu = parse_printed("10.44", Kind::measured, 0.01, 7);
  ASSERT_TRUE(mfu.has_value());
  EXPECT_DOUBLE_EQ(mfu->value, 0.1044);
  EXPECT_NEAR(mfu->low, 0.10435, 1e-12);
  EXPECT_NEAR(mfu->high, 0.10445, 1e-12);
  EXPECT_EQ(mfu->line, 7);
  const auto rate = parse_printed("1.65e-06", Kind::measured);
  ASSERT_TRUE(rate.has_value());
  EXPECT_NEAR(rate->high - rate->low, 1e-8, 1e-15);
  EXPECT_TRUE(rate->holds(1.654e-6));
  EXPECT_FALSE(rate->holds(1.656e-6));
}

TEST(PrintedSpec, CountsAreExactAndMeasuredIntegersAreNot) {
  EXPECT_TRUE(parse_printed("6,291,456", Kind::counted)->exact());
  EXPECT_EQ(parse_printed("6,291,456", Kind::counted)->value, 6291456);
  EXPECT_EQ(parse_printed("6_291_456", Kind::counted)->value, 6291456);
  const auto time = parse_printed("1838", Kind::measured, 1e-3);
  EXPECT_TRUE(time->holds(1.8384));
  EXPECT_FALSE(time->holds(1.8386));
}

TEST(PrintedSpec, WhatIsNoNumberIsRefused) {
  for (const char* text : {"",
                           "-",
                           ".",
                           "1.2.3",
                           "12a",
                           "1,2",
                           "12,34",
                           "1,234,56",
                           "1,234_567",
                           "0x10",
                           "1e",
                           "1e999",
                           "--1",
                           "1 2",
                           " 1",
                           "1 ",
                           ",123",
                           "1e99999999999",
                           "+-1",
                           "++1",
                           "-+1",
                           "123456789012345678+",
                           "1234567890123456,789"})
    EXPECT_FALSE(parse_printed(text, Kind::measured).has_value()) << text;
  EXPECT_FALSE(parse_printed(std::string(1000, '9'), Kind::counted).has_value());
  EXPECT_TRUE(std::isnan(parse_printed("NaN", Kind::measured)->value));
  EXPECT_TRUE(std::isinf(parse_printed("-inf", Kind::measured)->value));
}

RC_GTEST_PROP(PrintedSpec, HoldsTheNumberThatWasPrinted, ()) {
  const double number = *rc::gen::map(rc::gen::inRange<long>(-1'000'000'000, 1'000'000'000),
                                      [](long whole) { return static_cast<double>(whole) / 4096.0; });
  const int digits = *rc::gen::inRange(0, 9);
  char text[64];
  std::snprintf(text, sizeof text, *rc::gen::arbitrary<bool>() ? "%.*f" : "%.*e", digits, number);
  const auto printed = parse_printed(text, Kind::measured);
  RC_ASSERT(printed.has_value());
  // printf rounds the exact binary value; the ends of the interval carry one rounding each.
  const double rounding = 4e-16 * std::abs(number);
  RC_ASSERT(printed->low - rounding <= number && number <= printed->high + rounding);
}

RC_GTEST_PROP(PrintedSpec, TheValueIsTheNearestDouble, ()) {
  const auto digits = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000'000);
  const int shorter = *rc::gen::inRange(0, 17), point = *rc::gen::inRange(-1, 20),
            exponent = *rc::gen::inRange(-30, 30);
  std::string text =
      std::to_string(digits).substr(static_cast<std::size_t>(shorter) % std::to_string(digits).size());
  if (point >= 0) text.insert(std::min(static_cast<std::size_t>(point), text.size()), ".");
  if (*rc::gen::arbitrary<bool>()) text += "e" + std::to_string(exponent);
  if (*rc::gen::arbitrary<bool>()) text = "-" + text;
  const auto printed = parse_printed(text, Kind::measured);
  RC_ASSERT(printed.has_value());
  RC_ASSERT(printed->value == std::strtod(text.c_str(), nullptr));
  RC_ASSERT(printed->low <= printed->value && printed->value <= printed->high);
}

TEST(PrintedSpec, ShortAndLongDecimalsHoldTheSameKindOfInterval) {
  // One digit more than the short way takes: the same half unit.
  for (const char* text : {"12345678901234", "1.2345678901234", "0.00012345678901234"}) {
    const auto printed = parse_printed(text, Kind::measured);
    ASSERT_TRUE(printed.has_value());
    EXPECT_GT(printed->high, printed->low) << text;
  }
  EXPECT_NEAR(parse_printed("-4.50e-03", Kind::measured)->low, -0.004505, 1e-15);
  EXPECT_EQ(parse_printed("-1,234.50", Kind::measured)->value, -1234.5);
  EXPECT_EQ(parse_printed("1,234,567", Kind::counted)->value, 1234567);
  EXPECT_EQ(parse_printed("+12,345,678,901,234,567", Kind::counted)->value, 12345678901234567.0);
  EXPECT_EQ(parse_printed("12345678901234567.", Kind::counted)->value, 12345678901234567.0);
  EXPECT_EQ(parse_printed("-.00012345678901234567e+5", Kind::counted)->value, -12.345678901234567);
}

RC_GTEST_PROP(PrintedSpec, TheQuickWayReadsTheSameNumberAndStopsBehindIt, ()) {
  const auto digits = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000'000);
  std::string number = std::to_string(digits >> *rc::gen::inRange(0, 60));
  if (*rc::gen::arbitrary<bool>())
    number += "." + std::to_string(digits % 100'000'000).substr(0, *rc::gen::inRange<std::size_t>(0, 8));
  if (*rc::gen::arbitrary<bool>()) number += "e-0" + std::to_string(*rc::gen::inRange(0, 10));
  const std::string rest =
      *rc::gen::element<std::string>("", " ", "ms, mfu 12.3%", ", loss 1", "e", "%", "k", "/9");
  const std::string text = "-" + number + rest;
  const char* at = text.data();
  Printed quick;
  const bool read = take_plain(at, text.data() + text.size(), Kind::measured, 1e-3, 5, quick);
  if (number.size() < 17) RC_ASSERT(read);
  RC_ASSERT(at == text.data() + (read ? number.size() + 1 : 0));
  if (read) RC_ASSERT(quick == *parse_printed("-" + number, Kind::measured, 1e-3, 5));
}

TEST(PrintedSpec, TheQuickWayTakesGroupsOnlyWhereTheyAreMeant) {
  const std::string text = "1,234,567,8";
  const auto taken = [&](bool groups, std::size_t length) {
    const char* at = text.data();
    Printed out;
    const bool read = take_plain(at, at + length, Kind::counted, 1, 0, out, groups);
    return std::pair(read ? out.value : -1, at - text.data());
  };
  EXPECT_EQ(taken(true, 9), std::pair(1234567.0, std::ptrdiff_t{9}));
  EXPECT_EQ(taken(false, 9), std::pair(1.0, std::ptrdiff_t{1}));
  EXPECT_EQ(taken(true, 10), std::pair(1234567.0, std::ptrdiff_t{9}));      // the comma of a list
  EXPECT_EQ(taken(true, text.size()), std::pair(-1.0, std::ptrdiff_t{0}));  // groups of another kind
}

}  // namespace
}  // namespace assay::spec::audit::printed_test
