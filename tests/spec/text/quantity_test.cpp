// labels: unit
#include "spec/text/quantity.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::spec::quantity_test {
namespace {

TEST(QuantitySpec, DigitsAreGroupedByThree) {
  EXPECT_EQ(grouped(std::int64_t(0)), "0");
  EXPECT_EQ(grouped(std::int64_t(999)), "999");
  EXPECT_EQ(grouped(std::int64_t(-1000)), "-1,000");
  EXPECT_EQ(grouped(std::int64_t(-100)), "-100");
  EXPECT_EQ(grouped(std::int64_t(1294159104)), "1,294,159,104");
  EXPECT_EQ(grouped(Count(1000) * Count(1'000'000'000'000'000'000)), "1,000,000,000,000,000,000,000");
}

TEST(QuantitySpec, NumbersRoundToNearestAndKeepTheirWidth) {
  EXPECT_EQ(fixed(10.8345, 3), "10.835");  // the double lies above the tie
  EXPECT_EQ(fixed(-0.04, 1), "-0.0");
  EXPECT_EQ(fixed(std::nan(""), 4), "nan");
  EXPECT_EQ(fixed(-HUGE_VAL, 4), "-inf");
  EXPECT_EQ(scientific(1.5e-4, 2), "1.50e-04");
}

TEST(QuantitySpec, SiPrefixesChangeWhereThreeDigitsWouldOverflow) {
  EXPECT_EQ(si(7.84e12, "FLOP"), "7.84 TFLOP");
  EXPECT_EQ(si(999.4, "B"), "999 B");
  EXPECT_EQ(si(999.6, "B"), "1.00 kB");
  EXPECT_EQ(si(12, "B"), "12 B");
  EXPECT_EQ(si(0.5, "B"), "0.50 B");
  EXPECT_EQ(si(99.96e3, "B"), "100 kB");
}

TEST(QuantitySpec, HexadecimalHasAllDigits) {
  EXPECT_EQ(hexadecimal(0), "0000000000000000");
  EXPECT_EQ(hexadecimal(0x0123456789abcdefULL), "0123456789abcdef");
}

TEST(QuantitySpec, BytesAndDurations) {
  EXPECT_EQ(bytes(1023), "1023 B");
  EXPECT_EQ(bytes(1024), "1.00 KiB");
  EXPECT_EQ(bytes(25'120'000'000), "23.4 GiB");
  EXPECT_EQ(duration(0.4249), "0.42 s");
  EXPECT_EQ(duration(62.14), "62.1 s");
  EXPECT_EQ(duration(185.2), "3 min 05 s");
  EXPECT_EQ(duration(3600 * 2 + 14 * 60), "2 h 14 min");
  EXPECT_EQ(duration(3 * 86400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(duration(HUGE_VAL), "unknown");
  EXPECT_EQ(percent(0.94249), "94.2 %");
}

}  // namespace
}  // namespace assay::spec::quantity_test
