// labels: unit property golden
#include "spec/ops/init/init.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "spec/error.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::init_test {
namespace {

TEST(InitSpec, C1RejectsAShapeThatIsNotTheRoles) {
  EXPECT_NO_THROW(init::check_shape(Role::norm, {8}));
  EXPECT_NO_THROW(init::check_shape(Role::gate, {16, 8}));
  EXPECT_THROW(init::check_shape(Role::norm, {8, 8}), SpecError);
  EXPECT_THROW(init::check_shape(Role::embedding, {8}), SpecError);
  try {
    init::check_shape(Role::gate, {16, 0});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "init_c1: shape [16, 0], expected 2 extents >= 1");
  }
}

TEST(InitSpec, C2RejectsAStandardDeviationThatIsNotPositive) {
  for (double std :
       {0.0, -0.02, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(init::initial_value(Role::gate, 1, 0, 0, std, 2), SpecError) << std;
}

TEST(InitSpec, C3RejectsAModelWithoutLayers) {
  EXPECT_THROW(init::initial_value(Role::gate, 1, 0, 0, 0.02, 0), SpecError);
}

TEST(InitSpec, C4RejectsAParameterNumberThatTheStreamCannotHold) {
  EXPECT_NO_THROW(init::initial_value(Role::gate, 1, 0xFFFFFFFF, 0, 0.02, 2));
  EXPECT_THROW(init::initial_value(Role::gate, 1, 0x100000000, 0, 0.02, 2), SpecError);
  EXPECT_THROW(init::initial_value(Role::gate, 1, -1, 0, 0.02, 2), SpecError);
}

TEST(InitSpec, GivesTheSpecExample) {
  EXPECT_EQ(init::initial_std(Role::down, 0.02, 2), 0.01);
  EXPECT_EQ(init::initial_value(Role::norm, 7, 3, 5, 0.02, 2), 1);
  for (Role role : {Role::down, Role::attention_output})
    EXPECT_DOUBLE_EQ(2 * init::initial_value(role, 7, 3, 5, 0.02, 2),
                     init::initial_value(Role::gate, 7, 3, 5, 0.02, 2));
}

TEST(InitSpec, NumbersAreThoseOfMpmath) {
  const auto golden = tests::load_golden("ops/init/normal.json");
  const auto seeds = golden.ids("seed"), parameters = golden.ids("stream"), elements = golden.ids("index");
  tests::Values actual{golden.shape("normal"), {}};
  for (std::size_t i = 0; i < seeds.size(); ++i)
    actual.data.push_back(init::initial_value(Role::query, static_cast<std::uint64_t>(seeds[i]),
                                              parameters[i], static_cast<std::uint64_t>(elements[i]), 1, 1));
  // sqrt(-2 ln u) cos(2 pi v) (spec/random/box_muller.hpp): logarithm and cosine have a relative error of
  // 2^-50 each, of which the root halves the first; u and v are rounded once, and an error of v turns by 2 pi
  // as much; the root and the product are rounded. The radius is at most that of the smallest u, 2^-54.
  const double roundoff = unit_roundoff(Dtype::f64);
  const double share = 1.5 * 0x1p-50 + gamma(0.5 + 2 * std::numbers::pi + 2, roundoff);
  const double radius = std::sqrt(-2 * std::log(0x1p-54));
  ASSAY_EXPECT_CLOSE(actual, golden.tensor("normal"),
                     tests::Allowed::elementwise(std::vector<double>(actual.data.size(), share * radius)));
}

RC_GTEST_PROP(InitSpec, ValuesHaveTheirMeanAndStandardDeviation, ()) {
  const auto role = *rc::gen::element(Role::embedding, Role::query, Role::down, Role::head);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::int64_t parameter = *rc::gen::inRange(0, 1000), layers = *rc::gen::inRange(1, 100);
  constexpr int n = 4096;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double value =
        init::initial_value(role, seed, parameter, i, 0.02, layers) / init::initial_std(role, 0.02, layers);
    sum += value;
    squares += value * value;
  }
  // Standard errors 1/sqrt(n) and sqrt(2/n); six of them are passed once in 5e8 draws.
  RC_ASSERT(std::abs(sum / n) < 6 / std::sqrt(n));
  RC_ASSERT(std::abs(squares / n - 1) < 6 * std::sqrt(2.0 / n));
}

RC_GTEST_PROP(InitSpec, SeedParameterAndElementEachChangeTheValue, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::int64_t parameter = *rc::gen::inRange(0, 1000);
  const std::uint64_t element = *rc::gen::inRange(0, 1000000);
  const auto value = [](std::uint64_t s, std::int64_t p, std::uint64_t e) {
    return init::initial_value(Role::up, s, p, e, 0.02, 4);
  };
  RC_ASSERT(value(seed, parameter, element) == value(seed, parameter, element));
  RC_ASSERT(value(seed, parameter, element) != value(seed + 1, parameter, element));
  RC_ASSERT(value(seed, parameter, element) != value(seed, parameter + 1, element));
  RC_ASSERT(value(seed, parameter, element) != value(seed, parameter, element + 1));
}

}  // namespace
}  // namespace assay::spec::init_test
