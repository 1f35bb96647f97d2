// labels: unit property golden
#include "reference/ops/quantise.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::quantise_test {
namespace {

using quantise::Along;
using quantise::Format;
using quantise::Recipe;
using quantise::Role;
using quantise::Scaling;
using tests::Allowed;
using tests::values;

/// N(0, 1) times powers of two from 2^-12 to 2^12, some zeros, some exact ties of FP8.
Tensor<double> drawn_matrix(Index R, Index C, std::uint64_t seed) {
  auto x = tests::normal({R, C}, seed);
  const auto exponent = tests::normal({R, C}, seed + 1, 4), kind = tests::normal({R, C}, seed + 2);
  for (Index i = 0; i < x.size(); ++i) {
    if (kind[i] > 0.5) x[i] = std::nearbyint(64 * x[i]) / 16;
    x[i] = kind[i] < -2 ? 0 : std::ldexp(x[i], static_cast<int>(exponent[i]));
  }
  return x;
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

void equal_to_the_spec(const Tensor<double>& x, Format format, Scaling scaling) {
  const Index R = x.extent(0), C = x.extent(1);
  const auto expected =
      spec::quantise::quantise({x.flat().data(), static_cast<std::size_t>(x.size())}, R, C, format, scaling);
  const auto actual = quantise::quantise(x, format, scaling);
  RC_ASSERT(actual.codes == expected.codes);
  RC_ASSERT(actual.scales.size() == static_cast<Index>(expected.scales.size()));
  for (Index i = 0; i < actual.scales.size(); ++i)
    RC_ASSERT(same(actual.scales[i], expected.scales[static_cast<std::size_t>(i)]));
  for (Index r = 0; r < R; ++r)
    for (Index c = 0; c < C; ++c) RC_ASSERT(same(actual.values(r, c), expected.value(r, c)));
}

RC_GTEST_PROP(QuantiseReference, HasTheBitsOfTheSpec, ()) {
  const auto scaling = *rc::gen::element(Scaling::tensor, Scaling::row, Scaling::block_1x128,
                                         Scaling::block_128x128, Scaling::mx_1x32);
  const Index R = *rc::gen::inRange<Index>(0, 5) * *rc::gen::element(1, 50),
              C = *rc::gen::inRange<Index>(0, 280);
  auto x = drawn_matrix(R, C, *rc::gen::arbitrary<std::uint64_t>());
  if (x.size() > 0 && *rc::gen::inRange(0, 4) == 0)
    x[*rc::gen::inRange<Index>(0, x.size())] = *rc::gen::element(NAN, INFINITY, -INFINITY);
  equal_to_the_spec(x, *rc::gen::element(Format::e4m3, Format::e5m2), scaling);
}

TEST(QuantiseReference, GivesTheSpecExample) {
  const auto row = quantise::quantise(Tensor<double>({1, 3}, {1000, -1, 0.001}), Format::e4m3, Scaling::row);
  EXPECT_EQ(row.scales[0], 4);
  ASSAY_EXPECT_CLOSE(values(row.values), (tests::Values{{1, 3}, {1024, -1, 0}}), Allowed::exact());
}

TEST(QuantiseReference, MatchesTorchFloat8BitForBit) {
  for (const auto& [name, format] : {std::pair{"e4m3", Format::e4m3}, std::pair{"e5m2", Format::e5m2}}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/quantise/") + name + ".json");
    const auto of_codes = golden.tensor("values").data;
    const auto kinds = golden.ids("kinds");  // 0 finite, 1 infinity, -1 minus infinity, 2 NaN
    ASSERT_EQ(of_codes.size(), 256U);
    for (std::size_t code = 0; code < 256; ++code) {
      const double value = spec::quantise::decode(format, static_cast<std::uint8_t>(code));
      const int kind = std::isnan(value) ? 2 : std::isinf(value) ? (value > 0 ? 1 : -1) : 0;
      EXPECT_EQ(kind, kinds[code]) << code;
      if (kind == 0) {
        EXPECT_EQ(value, of_codes[code]) << code;
        EXPECT_EQ(std::signbit(value), code >= 128) << code;
      }
    }
    const auto x = golden.tensor("x").data;
    const auto codes = golden.ids("codes");
    ASSERT_EQ(x.size(), codes.size());
    // The largest value among them makes the scale 1, so the reference's codes are casts of x.
    auto with_largest = x;
    with_largest.push_back(spec::quantise::largest(format));
    const auto n = static_cast<Index>(with_largest.size());
    const auto reference = quantise::quantise(Tensor<double>({1, n}, with_largest), format, Scaling::tensor);
    ASSERT_EQ(reference.scales[0], 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(spec::quantise::encode(format, x[i]), codes[i]) << x[i];
      EXPECT_EQ(reference.codes[i], codes[i]) << x[i];
    }
  }
}

TEST(QuantiseReference, AGemmReadsEachOrientationQuantisedAlongItsSum) {
  // [2, 3] of small and large rows: along the rows the scales are 2^-8 and 2^0, along the columns all are
  // 2^0.
  const Tensor<double> x({2, 3}, {1.03, 1.1, 0.0009, 400, 410, 300});
  const auto last = quantise::read_by_gemm(x, Recipe::mxfp8, Role::activation, Along::last);
  const auto leading = quantise::read_by_gemm(x, Recipe::mxfp8, Role::activation, Along::leading);
  ASSAY_EXPECT_CLOSE(values(last), (tests::Values{{2, 3}, {1, 1.125, 0.00091552734375, 384, 416, 288}}),
                     Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(leading), (tests::Values{{2, 3}, {1, 1.125, 0, 384, 416, 288}}),
                     Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(quantise::read_by_gemm(x, Recipe::none, Role::activation, Along::leading)),
                     values(x), Allowed::exact());
}

RC_GTEST_PROP(QuantiseReference, WeightsIn128x128BlocksAndTensorsAreOneInBothOrientations, ()) {
  const Index R = *rc::gen::inRange<Index>(1, 200), C = *rc::gen::inRange<Index>(1, 200);
  const auto x = drawn_matrix(R, C, *rc::gen::arbitrary<std::uint64_t>());
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block})
    ASSAY_RC_CLOSE(values(quantise::read_by_gemm(x, recipe, Role::weight, Along::last)),
                   values(quantise::read_by_gemm(x, recipe, Role::weight, Along::leading)), Allowed::exact());
}

}  // namespace
}  // namespace assay::reference::quantise_test
