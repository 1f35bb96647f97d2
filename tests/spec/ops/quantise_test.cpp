// labels: unit property
#include "spec/ops/quantise/quantise.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/error.hpp"
#include "spec/random/philox.hpp"

namespace assay::spec::quantise_test {
namespace {

using quantise::Format;
using quantise::Matrix;
using quantise::Recipe;
using quantise::Role;
using quantise::Scaling;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double cast(Format format, double x) { return quantise::decode(format, quantise::encode(format, x)); }

rc::Gen<Format> any_format() { return rc::gen::element(Format::e4m3, Format::e5m2); }
rc::Gen<Scaling> any_scaling() {
  return rc::gen::element(Scaling::tensor, Scaling::row, Scaling::block_1x128, Scaling::block_128x128,
                          Scaling::mx_1x32);
}

/// From far below the least subnormal to just above the largest finite value, both signs.
double drawn_value(Format format) {
  const double mantissa = *rc::gen::inRange<std::int64_t>(1 << 20, 1 << 21);
  const int exponent = *rc::gen::inRange(format == Format::e4m3 ? -14 : -21, format == Format::e4m3 ? 9 : 16);
  return (*rc::gen::arbitrary<bool>() ? -1 : 1) * std::ldexp(mantissa, exponent - 20);
}

/// N(0, 1) times a power of two of its own for each entry, so that blocks differ in their scales.
std::vector<double> drawn_matrix(std::int64_t entries, std::uint64_t seed) {
  const random::Stream stream(seed, random::Site::test, 0);
  std::vector<double> values;
  for (std::int64_t i = 0; i < entries; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const double exponent = 4 * stream.normal(index + static_cast<std::uint64_t>(entries));
    values.push_back(std::ldexp(stream.normal(index), static_cast<int>(exponent)));
  }
  return values;
}

std::vector<double> transposed(const std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<double> out(values.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      out[static_cast<std::size_t>(column * rows + row)] =
          values[static_cast<std::size_t>(row * columns + column)];
  return out;
}

TEST(QuantiseSpec, FormatsHaveTheValuesOfTheirTable) {
  EXPECT_EQ(quantise::largest(Format::e4m3), 448);
  EXPECT_EQ(quantise::largest(Format::e5m2), 57344);
  EXPECT_EQ(quantise::least_normal(Format::e4m3), 0x1p-6);
  EXPECT_EQ(quantise::least_normal(Format::e5m2), 0x1p-14);
  EXPECT_EQ(quantise::decode(Format::e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(quantise::decode(Format::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(quantise::decode(Format::e4m3, 0x08), 0x1p-6);
  EXPECT_EQ(quantise::decode(Format::e4m3, 0x7E), 448);
  EXPECT_EQ(quantise::decode(Format::e4m3, 0xFE), -448);
  EXPECT_EQ(quantise::decode(Format::e5m2, 0x7B), 57344);
  EXPECT_EQ(quantise::decode(Format::e5m2, 0x7C), infinity);
  EXPECT_EQ(quantise::decode(Format::e5m2, 0xFC), -infinity);
  for (const int code : {0x7F, 0xFF})
    EXPECT_TRUE(std::isnan(quantise::decode(Format::e4m3, static_cast<std::uint8_t>(code))));
  for (const int code : {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF})
    EXPECT_TRUE(std::isnan(quantise::decode(Format::e5m2, static_cast<std::uint8_t>(code))));
}

TEST(QuantiseSpec, CastsAsTheExamplesOfItsPage) {
  EXPECT_EQ(quantise::encode(Format::e4m3, 0.3), 0x2A);
  EXPECT_EQ(cast(Format::e4m3, 0.3), 0.3125);
  EXPECT_EQ(quantise::encode(Format::e4m3, 17), 0x58);       // the middle of 16 and 18
  EXPECT_EQ(quantise::encode(Format::e4m3, 19), 0x5A);       // the middle of 18 and 20
  EXPECT_EQ(quantise::encode(Format::e4m3, 15.5), 0x58);     // up into the next binade
  EXPECT_EQ(quantise::encode(Format::e4m3, 0x1p-10), 0x00);  // the middle of 0 and the least
  EXPECT_EQ(quantise::encode(Format::e4m3, 3 * 0x1p-10), 0x02);
  EXPECT_EQ(quantise::encode(Format::e4m3, 15 * 0x1p-10), 0x08);  // the largest subnormal's tie: normal
  EXPECT_EQ(quantise::encode(Format::e4m3, 500), 0x7E);
  EXPECT_EQ(quantise::encode(Format::e4m3, -1e300), 0xFE);
  EXPECT_EQ(quantise::encode(Format::e5m2, 0.3), 0x35);
  EXPECT_EQ(quantise::encode(Format::e5m2, 61440), 0x7B);  // a tie towards 2^16, which is no finite value
  EXPECT_EQ(quantise::encode(Format::e5m2, 1e9), 0x7B);
  EXPECT_EQ(quantise::encode(Format::e4m3, 0.0), 0x00);
  EXPECT_EQ(quantise::encode(Format::e4m3, -0.0), 0x80);
  EXPECT_EQ(quantise::encode(Format::e4m3, -1e-9), 0x80);
  EXPECT_EQ(quantise::encode(Format::e4m3, std::numeric_limits<double>::denorm_min()), 0x00);
}

TEST(QuantiseSpec, RoundsTheExactValueOnce) {
  // By way of bf16 (9 significant bits: 17 + 2^-20 becomes 17) the tie would go to 16.
  EXPECT_EQ(cast(Format::e4m3, 17 + 0x1p-20), 18);
  EXPECT_EQ(cast(Format::e4m3, 17 - 0x1p-20), 16);
  EXPECT_EQ(cast(Format::e5m2, 1.125 + 0x1p-40), 1.25);  // by way of fp32: 1
}

TEST(QuantiseSpec, WhatIsNotFiniteBecomesNaN) {
  for (const Format format : {Format::e4m3, Format::e5m2})
    for (const double x : {infinity, -infinity, not_a_number, -not_a_number})
      EXPECT_EQ(quantise::encode(format, x), 0x7F);
}

TEST(QuantiseSpec, EveryFiniteCodeIsTheCodeOfItsValue) {
  for (const Format format : {Format::e4m3, Format::e5m2})
    for (int code = 0; code < 256; ++code) {
      const double value = quantise::decode(format, static_cast<std::uint8_t>(code));
      if (std::isfinite(value)) {
        EXPECT_EQ(quantise::encode(format, value), code) << to_string(format);
      }
    }
}

TEST(QuantiseSpec, ATieGoesToTheEvenCodeAndItsNeighboursToTheNearest) {
  for (const Format format : {Format::e4m3, Format::e5m2})
    for (std::uint8_t code = 0; quantise::decode(format, code) < quantise::largest(format); ++code) {
      const auto above = static_cast<std::uint8_t>(code + 1);
      const double middle = (quantise::decode(format, code) + quantise::decode(format, above)) / 2;
      EXPECT_EQ(quantise::encode(format, middle), code % 2 == 0 ? code : above);
      EXPECT_EQ(quantise::encode(format, std::nextafter(middle, 0)), code);
      EXPECT_EQ(quantise::encode(format, std::nextafter(middle, infinity)), above);
      EXPECT_EQ(quantise::encode(format, -middle), 0x80 | (code % 2 == 0 ? code : above));
    }
}

RC_GTEST_PROP(QuantiseSpec, CastIsMonotoneIdempotentOddAndWithinItsBound, ()) {
  const Format format = *any_format();
  const double x = drawn_value(format), y = drawn_value(format);
  RC_ASSERT((x <= y ? cast(format, x) <= cast(format, y) : cast(format, x) >= cast(format, y)));
  RC_ASSERT(cast(format, cast(format, x)) == cast(format, x));
  RC_ASSERT(cast(format, -x) == -cast(format, x));
  if (std::abs(x) <= quantise::largest(format))
    RC_ASSERT(std::abs(cast(format, x) - x) <= quantise::cast_bound(format, x));
  else
    RC_ASSERT(std::abs(cast(format, x)) == quantise::largest(format));
}

TEST(QuantiseSpec, TheBoundOfACastIsReached) {
  for (const auto& [format, mantissa_bits] : {std::pair{Format::e4m3, 3}, std::pair{Format::e5m2, 2}}) {
    const double middle = 1 + std::ldexp(0.5, -mantissa_bits);  // of 1 and the next value
    EXPECT_EQ(std::abs(cast(format, middle) - middle), std::ldexp(1, -mantissa_bits - 1));
    EXPECT_EQ(quantise::cast_bound(format, 1), std::ldexp(1, -mantissa_bits - 1));
    const double least = quantise::decode(format, 1);
    EXPECT_EQ(cast(format, least / 2), 0);
    EXPECT_EQ(quantise::cast_bound(format, least / 2), least / 2);
  }
}

TEST(QuantiseSpec, TheScaleHoldsAmaxAndHalfOfItDoesNot) {
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 448), 0);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, std::nextafter(448, 449)), 1);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 1000), 2);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 1), -8);  // 448 / 256 = 1.75
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 1.75), -8);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 1.76), -7);
  EXPECT_EQ(quantise::scale_exponent(Format::e5m2, 57344), 0);
  EXPECT_EQ(quantise::scale_exponent(Format::e5m2, 1), -15);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 0), 0);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, 1e-45), -126);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, infinity), std::nullopt);
  EXPECT_EQ(quantise::scale_exponent(Format::e4m3, not_a_number), std::nullopt);
}

RC_GTEST_PROP(QuantiseSpec, TheScaleExponentIsTheLeast, ()) {
  const Format format = *any_format();
  const double amax =
      std::ldexp(static_cast<double>(*rc::gen::inRange(1, 1 << 24)), *rc::gen::inRange(-160, 100));
  const int e = *quantise::scale_exponent(format, amax);
  RC_ASSERT(e >= quantise::least_exponent);
  RC_ASSERT(amax <= std::ldexp(quantise::largest(format), e));
  if (e > quantise::least_exponent) RC_ASSERT(amax > std::ldexp(quantise::largest(format), e - 1));
}

TEST(QuantiseSpec, QuantisesTheRowOfItsPage) {
  const Matrix m = quantise::quantise(std::vector<double>{1000, -1, 0.001}, 1, 3, Format::e4m3, Scaling::row);
  EXPECT_EQ(m.scales, std::vector<double>{4});
  EXPECT_EQ(m.value(0, 0), 1024);
  EXPECT_EQ(m.value(0, 1), -1);
  EXPECT_EQ(m.value(0, 2), 0);
}

TEST(QuantiseSpec, ScalesOfPartialBlocks) {
  const auto shape = [](Scaling scaling, std::int64_t rows, std::int64_t columns) {
    const auto b = quantise::blocks(scaling, rows, columns);
    return std::pair{b.rows, b.columns};
  };
  EXPECT_EQ(shape(Scaling::tensor, 3, 300), (std::pair<std::int64_t, std::int64_t>{1, 1}));
  EXPECT_EQ(shape(Scaling::row, 3, 300), (std::pair<std::int64_t, std::int64_t>{3, 1}));
  EXPECT_EQ(shape(Scaling::block_1x128, 3, 300), (std::pair<std::int64_t, std::int64_t>{3, 3}));
  EXPECT_EQ(shape(Scaling::block_1x128, 3, 256), (std::pair<std::int64_t, std::int64_t>{3, 2}));
  EXPECT_EQ(shape(Scaling::block_128x128, 129, 300), (std::pair<std::int64_t, std::int64_t>{2, 3}));
  EXPECT_EQ(shape(Scaling::mx_1x32, 3, 300), (std::pair<std::int64_t, std::int64_t>{3, 10}));
  EXPECT_EQ(shape(Scaling::tensor, 0, 0), (std::pair<std::int64_t, std::int64_t>{1, 1}));
  EXPECT_EQ(shape(Scaling::mx_1x32, 2, 0), (std::pair<std::int64_t, std::int64_t>{2, 0}));
  EXPECT_TRUE(quantise::quantise({}, 0, 0, Format::e4m3, Scaling::tensor).codes.empty());
}

RC_GTEST_PROP(QuantiseSpec, EveryBlockIsQuantisedAsATensorOfItsOwn, ()) {
  const Format format = *any_format();
  const Scaling scaling = *any_scaling();
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 5) * *rc::gen::element(1, 60),
             columns = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto values = drawn_matrix(rows * columns, *rc::gen::arbitrary<std::uint64_t>());
  const Matrix whole = quantise::quantise(values, rows, columns, format, scaling);
  const auto b = quantise::blocks(scaling, rows, columns);
  RC_ASSERT(static_cast<std::int64_t>(whole.scales.size()) == b.rows * b.columns);
  for (std::int64_t r = 0; r < rows; r += b.block_rows)
    for (std::int64_t c = 0; c < columns; c += b.block_columns) {
      const auto row_end = std::min(r + b.block_rows, rows),
                 column_end = std::min(c + b.block_columns, columns);
      std::vector<double> part;
      std::vector<std::uint8_t> codes;
      for (auto row = r; row < row_end; ++row)
        for (auto column = c; column < column_end; ++column) {
          part.push_back(values[static_cast<std::size_t>(row * columns + column)]);
          codes.push_back(whole.codes[static_cast<std::size_t>(row * columns + column)]);
        }
      const Matrix alone = quantise::quantise(part, row_end - r, column_end - c, format, Scaling::tensor);
      RC_ASSERT(alone.codes == codes);
      RC_ASSERT(alone.scales.front() == whole.scale(r, c));
      RC_ASSERT(alone.scales.front() == whole.scale(row_end - 1, column_end - 1));
    }
}

RC_GTEST_PROP(QuantiseSpec, EveryEntryIsWithinTheCastsBoundTimesItsScale, ()) {
  const Format format = *any_format();
  const Scaling scaling = *any_scaling();
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 5), columns = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto values = drawn_matrix(rows * columns, *rc::gen::arbitrary<std::uint64_t>());
  const Matrix m = quantise::quantise(values, rows, columns, format, scaling);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const double x = values[static_cast<std::size_t>(r * columns + c)], s = m.scale(r, c);
      RC_ASSERT(std::abs(m.value(r, c) - x) <= s * quantise::cast_bound(format, x / s));
    }
}

RC_GTEST_PROP(QuantiseSpec, TensorsAnd128x128BlocksAreTheSameBothWays, ()) {
  const Scaling scaling = *rc::gen::element(Scaling::tensor, Scaling::block_128x128);
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 300),
             columns = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto values = drawn_matrix(rows * columns, *rc::gen::arbitrary<std::uint64_t>());
  const Matrix m = quantise::quantise(values, rows, columns, Format::e4m3, scaling);
  const Matrix t =
      quantise::quantise(transposed(values, rows, columns), columns, rows, Format::e4m3, scaling);
  RC_ASSERT(quantise::same_both_ways(scaling));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      RC_ASSERT(t.codes[static_cast<std::size_t>(c * rows + r)] ==
                m.codes[static_cast<std::size_t>(r * columns + c)]);
      RC_ASSERT(t.scale(c, r) == m.scale(r, c));
    }
}

TEST(QuantiseSpec, BlocksOfOneRowAreNotTheSameBothWays) {
  for (const Scaling scaling : {Scaling::row, Scaling::block_1x128, Scaling::mx_1x32}) {
    EXPECT_FALSE(quantise::same_both_ways(scaling));
    const auto rows = quantise::quantise(std::vector<double>{3, 1, 1000, 1000}, 2, 2, Format::e4m3, scaling);
    const auto columns =
        quantise::quantise(std::vector<double>{3, 1000, 1, 1000}, 2, 2, Format::e4m3, scaling);
    EXPECT_NE(rows.scale(0, 0), columns.scale(0, 0));
  }
}

TEST(QuantiseSpec, ABlockWithNaNOrInfinityIsNaNAndNoOtherIs) {
  for (const double bad : {not_a_number, infinity, -infinity}) {
    std::vector<double> values(2 * 64, 1.0);
    values[40] = bad;  // second block of 32 of the first row
    values[41] = 1000;
    const Matrix m = quantise::quantise(values, 2, 64, Format::e4m3, Scaling::mx_1x32);
    for (std::int64_t r = 0; r < 2; ++r)
      for (std::int64_t c = 0; c < 64; ++c) {
        const bool within = r == 0 && c >= 32;
        EXPECT_EQ(std::isnan(m.value(r, c)), within);
        if (within) {
          EXPECT_EQ(m.codes[static_cast<std::size_t>(r * 64 + c)], 0x7F);
        }
      }
    EXPECT_TRUE(std::isnan(m.scales[1]));
    const Matrix tensor = quantise::quantise(values, 2, 64, Format::e5m2, Scaling::tensor);
    EXPECT_TRUE(std::isnan(tensor.scales.front()));
    EXPECT_TRUE(
        std::all_of(tensor.codes.begin(), tensor.codes.end(), [](auto code) { return code == 0x7F; }));
  }
}

TEST(QuantiseSpec, ABlockOfZerosHasScaleOne) {
  const Matrix m = quantise::quantise(std::vector<double>{0, -0.0}, 1, 2, Format::e4m3, Scaling::tensor);
  EXPECT_EQ(m.scales, std::vector<double>{1});
  EXPECT_EQ(m.codes, (std::vector<std::uint8_t>{0x00, 0x80}));
}

TEST(QuantiseSpec, C1RejectsAnotherNumberOfValues) {
  try {
    quantise::quantise(std::vector<double>{1, 2, 3}, 2, 2, Format::e4m3, Scaling::tensor);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "quantise_c1: 3 values for a matrix of 2 x 2");
  }
}

TEST(QuantiseSpec, RecipesQuantiseAsTheirTable) {
  const auto is = [](Recipe recipe, Role role, Format format, Scaling scaling) {
    return quantise::quantisation(recipe, role) == quantise::Quantisation{format, scaling};
  };
  EXPECT_TRUE(is(Recipe::fp8_tensor, Role::activation, Format::e4m3, Scaling::tensor));
  EXPECT_TRUE(is(Recipe::fp8_tensor, Role::weight, Format::e4m3, Scaling::tensor));
  EXPECT_TRUE(is(Recipe::fp8_tensor, Role::gradient, Format::e5m2, Scaling::tensor));
  EXPECT_TRUE(is(Recipe::fp8_block, Role::activation, Format::e4m3, Scaling::block_1x128));
  EXPECT_TRUE(is(Recipe::fp8_block, Role::weight, Format::e4m3, Scaling::block_128x128));
  EXPECT_TRUE(is(Recipe::fp8_block, Role::gradient, Format::e4m3, Scaling::block_1x128));
  for (const Role role : {Role::activation, Role::weight, Role::gradient})
    EXPECT_TRUE(is(Recipe::mxfp8, role, Format::e4m3, Scaling::mx_1x32));
}

TEST(QuantiseSpec, C2RecipeNoneQuantisesNothing) {
  try {
    quantise::quantisation(Recipe::none, Role::weight);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "quantise_c2: recipe none quantises nothing");
  }
}

TEST(QuantiseSpec, C3NamesTheExtentAndTheNearestMultiples) {
  EXPECT_NO_THROW(quantise::check(Recipe::none, 3, 5, 7));
  EXPECT_NO_THROW(quantise::check(Recipe::fp8_tensor, 16, 48, 32));
  EXPECT_NO_THROW(quantise::check(Recipe::fp8_block, 128, 256, 384));
  EXPECT_NO_THROW(quantise::check(Recipe::mxfp8, 32, 64, 96));
  const auto refusal = [](Recipe recipe, std::int64_t N, std::int64_t in, std::int64_t out) -> std::string {
    try {
      quantise::check(recipe, N, in, out);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(Recipe::fp8_tensor, 16, 40, 32),
            "quantise_c3: in=40 of a linear in fp8_tensor is no multiple of 16; nearest: 32 or 48");
  EXPECT_EQ(refusal(Recipe::fp8_block, 100, 128, 128),
            "quantise_c3: N=100 of a linear in fp8_block is no multiple of 128; nearest: 128");
  EXPECT_EQ(refusal(Recipe::mxfp8, 32, 32, 48),
            "quantise_c3: out=48 of a linear in mxfp8 is no multiple of 32; nearest: 32 or 64");
  EXPECT_EQ(refusal(Recipe::mxfp8, 0, 32, 32),
            "quantise_c3: N=0 of a linear in mxfp8 is no multiple of 32; nearest: 32");
}

TEST(QuantiseSpec, CountsBytesAndScalings) {
  // [256, 512] in bf16: 262,144 read, 131,072 written an orientation.
  EXPECT_EQ(quantise::bytes(256, 512, Scaling::tensor, 1, 2), Count(262144 + 131072 + 4));
  EXPECT_EQ(quantise::bytes(256, 512, Scaling::tensor, 2, 2), Count(262144 + 2 * 131072 + 4));
  EXPECT_EQ(quantise::bytes(256, 512, Scaling::block_128x128, 2, 2), Count(262144 + 2 * 131072 + 4 * 2 * 4));
  EXPECT_EQ(quantise::bytes(256, 512, Scaling::block_1x128, 2, 2),
            Count(262144 + 2 * 131072 + 4 * (256 * 4 + 512 * 2)));
  EXPECT_EQ(quantise::bytes(256, 512, Scaling::mx_1x32, 2, 2),
            Count(262144 + 2 * 131072 + 256 * 16 + 512 * 8));
  EXPECT_EQ(quantise::flops(256, 512, Scaling::tensor, 2), (Flops{0, 131072}));
  EXPECT_EQ(quantise::flops(256, 512, Scaling::block_1x128, 2), (Flops{0, 262144}));
}

}  // namespace
}  // namespace assay::spec::quantise_test
