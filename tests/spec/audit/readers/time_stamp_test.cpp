// labels: unit property
// The stamps of lines, one by one and in a row.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "spec/audit/readers/time_stamp.hpp"

namespace assay::spec::audit::time_stamp_test {
namespace {

TEST(TimeStampSpec, AStampIsSecondsSince1970) {
  const auto stamp = time_stamp("[titan] 1970-01-02 03:04:05,250 - ", 7);
  ASSERT_TRUE(stamp);
  EXPECT_EQ(stamp->value, 86400 + 3 * 3600 + 4 * 60 + 5.25);
  EXPECT_EQ(stamp->high, stamp->value + 0.0005);
  EXPECT_EQ(stamp->line, 7);
  EXPECT_FALSE(time_stamp("[titan] 2025-02-30 03:04:05,250 - ", 7)) << "no such day";
  EXPECT_FALSE(time_stamp("[titan] 03:04:05,250 - ", 7));
}

TEST(TimeStampSpec, TheYearMayStandLast) {
  const auto seconds = [](const char* text) {
    const auto stamp = time_stamp(text, 7);
    return stamp ? stamp->value : -1;
  };
  EXPECT_EQ(seconds("01/02/1970 03:04:05 [INFO|DP=0|PP=0|TP=0]: "), 86400 + 3 * 3600 + 4 * 60 + 5);
  EXPECT_EQ(seconds("01/13/1970 00:00:00 "), 12 * 86400);
  EXPECT_EQ(seconds("13/01/1970 00:00:00 "), 12 * 86400) << "a day: there is no such month";
  EXPECT_EQ(seconds("13/13/1970 00:00:00 "), -1);
  EXPECT_EQ(seconds("02/30/1970 00:00:00 "), -1);
  EXPECT_EQ(seconds("path/01/02 03:04:05 "), -1);
}

TEST(TimeStampSpec, TheYearMayBeMissing) {
  const auto seconds = [](const char* text) {
    const auto stamp = time_stamp(text, 7);
    return stamp ? stamp->value : -1;
  };
  constexpr double of_1972 = 2 * 365 * 86400.0;
  EXPECT_EQ(seconds("01/02 03:04:05 [INFO|DP=0|TP=0|lrdn0007]: "), of_1972 + 86400 + 3 * 3600 + 4 * 60 + 5);
  EXPECT_EQ(seconds("02/29 00:00:00 "), of_1972 + 59 * 86400.0);
  EXPECT_EQ(seconds("02/30 00:00:00 "), -1);
  EXPECT_EQ(seconds("01/02 03:04 "), -1);
}

bool same_stamp(const std::optional<Printed>& a, const std::optional<Printed>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->value == b->value && a->low == b->low && a->high == b->high && a->line == b->line;
}

/// In a row each line has the stamp that it has alone: of other days, behind other words, with more digits,
/// cut, and where one of its bytes is another.
RC_GTEST_PROP(TimeStampSpec, StampsInARowAreTheStampsOfEachLine, ()) {
  const auto two = [](int below) {
    const int number = *rc::gen::inRange(0, below);
    return std::string(number < 10 ? "0" : "") + std::to_string(number);
  };
  LineStamps stamps("step:");
  const std::string fractions[] = {"", ",123", ".123", ".123456", ".1234567", ","};
  std::size_t fraction = 1;
  std::string day = "2025-11-20", front = "[titan] ", behind = " - root - INFO - ";
  for (std::int64_t line = 1; line <= 60; ++line) {
    if (*rc::gen::inRange(0, 8) == 0) day = "2025-" + two(14) + "-" + two(33);
    if (*rc::gen::inRange(0, 8) == 0) day = two(14) + "/" + two(33) + "/2025";
    if (*rc::gen::inRange(0, 12) == 0)
      front = std::string(*rc::gen::elementOf(std::string("[ab")) == 'a' ? "a " : "");
    if (*rc::gen::inRange(0, 12) == 0) fraction = *rc::gen::inRange<std::size_t>(0, std::size(fractions));
    if (*rc::gen::inRange(0, 12) == 0) behind = " " + day + " 00:00:00 - ";
    std::string text = front + day + " " + two(24) + ":" + two(60) + ":" + two(60) + fractions[fraction] +
                       behind + "step: " + std::to_string(line) + " loss: 2.5 step: 3";
    if (*rc::gen::inRange(0, 4) == 0)
      text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::elementOf(std::string("0x-: ,s"));
    if (*rc::gen::inRange(0, 10) == 0) text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
    const auto own = time_stamp(text.substr(0, text.find("step:")), line);
    if (own && own->value < 3 * 366 * 86400.0) continue;  // without its year: a row has none of these
    RC_ASSERT(same_stamp(stamps.of(text, line), own));
  }
}

}  // namespace
}  // namespace assay::spec::audit::time_stamp_test
