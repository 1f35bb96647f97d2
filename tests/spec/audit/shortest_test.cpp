// labels: unit property
#include "spec/audit/shortest.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace assay::spec::audit::shortest_test {
namespace {

RC_GTEST_PROP(ShortestSpec, ADoubleInItsShortestFormIsReadBack, ()) {
  const auto mantissa = static_cast<double>(*rc::gen::arbitrary<std::int64_t>());
  const double number = std::ldexp(mantissa, *rc::gen::inRange(-150, 60));
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  RC_ASSERT(error == std::errc());
  const auto printed = shortest_printed({text, static_cast<std::size_t>(end - text)});
  RC_ASSERT(printed.has_value());
  RC_ASSERT(printed->value == number);
  RC_ASSERT(printed->low <= number && number <= printed->high);
}

RC_GTEST_PROP(ShortestSpec, TheQuotientIsTheNearestDoubleOrNone, ()) {
  const auto digits = *rc::gen::inRange<std::uint64_t>(1, std::numeric_limits<std::uint64_t>::max());
  const int power = *rc::gen::inRange(0, 28);
  const auto found = nearest_quotient(digits, power);
  if (found)
    RC_ASSERT(*found ==
              std::strtod((std::to_string(digits) + "e-" + std::to_string(power)).c_str(), nullptr));
}

TEST(ShortestSpec, TheQuotientIsFoundForNearlyAllNumbers) {
  std::uint64_t digits = 1;
  int found = 0;
  for (int i = 0; i < 10'000; ++i) {
    digits = digits * 6364136223846793005u + 1442695040888963407u;
    found += nearest_quotient(digits | 1u << 31, i % 28).has_value();
  }
  EXPECT_GT(found, 9'900);
}

TEST(ShortestSpec, AHalfwayCaseIsLeftToALongerLook) {
  // 2^53 + 1 lies between two doubles.
  EXPECT_FALSE(nearest_quotient((std::uint64_t{1} << 53) + 1, 0).has_value());
  EXPECT_EQ(shortest_printed("9007199254740993.0")->value, 9007199254740992.0);
}

TEST(ShortestSpec, IntegersAreExactAndOthersHaveRoom) {
  EXPECT_TRUE(shortest_printed("630784")->exact());
  EXPECT_TRUE(shortest_printed("123456789012345678")->exact());
  EXPECT_FALSE(shortest_printed("2.5")->exact());
  EXPECT_FALSE(shortest_printed("250", 0.01)->exact());
  EXPECT_EQ(shortest_printed("0.00011171104077452987")->value, 0.00011171104077452987);
  EXPECT_EQ(shortest_printed("0.0000000000000000000000000000012345")->value, 1.2345e-30);
}

TEST(ShortestSpec, WhatIsNoNumberOfJsonIsNotTaken) {
  for (const std::string text : {"+1", "1.", ".5", "-", "x", "1e+-5", "e5", "1e"}) {
    const char* at = text.data();
    Printed out;
    const bool taken = take_shortest(at, text.data() + text.size(), 1, 0, out);
    EXPECT_FALSE(taken && at == text.data() + text.size()) << text;
  }
}

}  // namespace
}  // namespace assay::spec::audit::shortest_test
