// labels: unit property
#include "spec/checkpoint/elements.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "spec/checkpoint/safetensors.hpp"

namespace assay::spec::elements_test {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Bits of `value` in a 16-bit type.
std::uint16_t bits_of(double value, std::string_view type) {
  std::uint16_t bits = 0;
  convert_elements(bytes_of(std::vector<double>{value}), "F64", std::as_writable_bytes(std::span(&bits, 1)),
                   type);
  return bits;
}

double value_of(std::uint16_t bits, std::string_view type) {
  return element_value(std::as_bytes(std::span(&bits, 1)), type, 0);
}

TEST(ElementsSpec, WorkedValues) {
  EXPECT_EQ(bits_of(1, "BF16"), 0x3F80);
  EXPECT_EQ(bits_of(-2.5, "BF16"), 0xC020);
  EXPECT_EQ(bits_of(1, "F16"), 0x3C00);
  EXPECT_EQ(bits_of(65504, "F16"), 0x7BFF);
  EXPECT_EQ(bits_of(0x1p-24, "F16"), 0x0001);
  EXPECT_EQ(bits_of(0x1p-25, "F16"), 0x0000);      // a tie, to even
  EXPECT_EQ(bits_of(0x1.8p-24, "F16"), 0x0002);    // likewise
  EXPECT_EQ(bits_of(0x1.FFFp-15, "F16"), 0x0400);  // the carry of the largest subnormal
  EXPECT_EQ(bits_of(1 + 0x1p-8, "BF16"), 0x3F80);  // ties of BF16's eighth bit
  EXPECT_EQ(bits_of(1 + 3 * 0x1p-8, "BF16"), 0x3F82);
  EXPECT_EQ(bits_of(-0.0, "F16"), 0x8000);
  // One rounding, not two: just above the tie, which float would round onto it.
  EXPECT_EQ(bits_of(1 + 0x1p-8 + 0x1p-40, "BF16"), 0x3F81);
}

/// Each of the 65,536 values goes through every wider type and comes back with its bits.
TEST(ElementsSpec, EveryNarrowValueComesBack) {
  for (const std::string_view type : {"F16", "BF16"})
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto narrow = static_cast<std::uint16_t>(bits);
      const double value = value_of(narrow, type);
      if (std::isnan(value)) continue;
      ASSERT_EQ(bits_of(value, type), narrow) << type << " " << bits;
      const auto single = static_cast<float>(value);
      std::uint16_t back = 0;
      convert_elements(bytes_of(std::vector<float>{single}), "F32",
                       std::as_writable_bytes(std::span(&back, 1)), type);
      ASSERT_EQ(back, narrow) << type << " " << bits;
    }
}

/// Half way between two neighbours the even one is taken, in every binade and of both signs.
TEST(ElementsSpec, TiesOfFloatsGoToTheEvenNeighbour) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    const auto value = std::bit_cast<float>(upper << 16 | 0x8000u);
    if (!std::isfinite(value)) continue;
    std::uint16_t bits = 0;
    convert_elements(bytes_of(std::vector<float>{value}), "F32", std::as_writable_bytes(std::span(&bits, 1)),
                     "BF16");
    ASSERT_EQ(bits, upper + (upper & 1)) << upper;
    ASSERT_EQ(bits_of(static_cast<double>(value), "BF16"), bits) << upper;
  }
}

/// No value of the narrow type is nearer, and of two equally near ones the even is taken.
RC_GTEST_PROP(ElementsSpec, RoundsToTheNearest, ()) {
  const std::string_view type = *rc::gen::element<std::string_view>("F16", "BF16");
  const int exponent = *rc::gen::inRange(-30, 15);
  const float value = static_cast<float>((*rc::gen::arbitrary<bool>() ? -1 : 1) *
                                         std::ldexp(1 + *rc::gen::inRange(0, 1 << 12) * 0x1p-12, exponent));
  std::uint16_t bits = 0;
  convert_elements(bytes_of(std::vector<float>{value}), "F32", std::as_writable_bytes(std::span(&bits, 1)),
                   type);
  const double off = std::fabs(value_of(bits, type) - value);
  for (const int step : {-1, 1}) {
    const double other = std::fabs(value_of(static_cast<std::uint16_t>(bits + step), type) - value);
    if (std::isnan(other)) continue;
    RC_ASSERT(off < other || (off == other && (bits & 1) == 0));
  }
}

TEST(ElementsSpec, SaysWhichValueItLost) {
  const auto from =
      bytes_of(std::vector<float>{1, 65504, 65520, 1e30F, std::numeric_limits<float>::infinity()});
  std::vector<std::byte> into(10);
  EXPECT_EQ(convert_elements(from, "F32", into, "F16"), 2u);
  EXPECT_EQ(convert_elements(from, "F32", into, "BF16"), std::nullopt);
  const auto infinite = bytes_of(std::vector<float>{std::numeric_limits<float>::infinity()});
  EXPECT_EQ(convert_elements(infinite, "F32", std::span(into).first(2), "F16"), std::nullopt);
  EXPECT_TRUE(std::isnan(value_of(bits_of(std::nan(""), "BF16"), "BF16")));
}

}  // namespace
}  // namespace assay::spec::elements_test
