// labels: unit property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "reference/ops/linear.hpp"
#include "spec/ops/fp8_gemm/fp8_gemm.hpp"
#include "spec/ops/quantise/quantise.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/gradient_check.hpp"

// Linears in FP8: each of the three GEMMs reads what the table of spec/ops/linear/linear.md says.

namespace assay::reference::linear_fp8_test {
namespace {

using spec::quantise::Matrix;
using spec::quantise::Recipe;
using spec::quantise::Role;
using tests::Allowed;
using tests::values;

constexpr Recipe recipes[] = {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8};

Tensor<double> transposed(const Tensor<double>& x) {
  Tensor<double> out({x.extent(1), x.extent(0)});
  for (Index r = 0; r < x.extent(0); ++r)
    for (Index c = 0; c < x.extent(1); ++c) out(c, r) = x(r, c);
  return out;
}

Matrix quantised(const Tensor<double>& x, Recipe recipe, Role role) {
  const auto [format, scaling] = spec::quantise::quantisation(recipe, role);
  return spec::quantise::quantise({x.flat().data(), static_cast<std::size_t>(x.size())}, x.extent(0),
                                  x.extent(1), format, scaling);
}

/// a b^T, summed in order.
Tensor<double> product(const Matrix& a, const Matrix& b) {
  Tensor<double> out({a.rows, b.rows});
  for (Index m = 0; m < a.rows; ++m)
    for (Index n = 0; n < b.rows; ++n)
      for (Index k = 0; k < a.columns; ++k) out(m, n) += a.value(m, k) * b.value(n, k);
  return out;
}

/// N(0, scale^2) times powers of two from about 2^-12 to 2^12. A power-of-two scale changes only what is
/// subnormal under it: of entries of like size both orientations have the same values.
Tensor<double> wide(Shape shape, std::uint64_t seed, double scale) {
  auto x = tests::normal(shape, seed, scale);
  const auto exponent = tests::normal(shape, seed + 100, 4);
  for (Index i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(exponent[i]));
  return x;
}

struct Drawn {
  Index N = *rc::gen::inRange<Index>(1, 40), in = *rc::gen::inRange<Index>(1, 150),
        out = *rc::gen::inRange<Index>(1, 40);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
  Recipe recipe = *rc::gen::elementOf(std::vector<Recipe>(std::begin(recipes), std::end(recipes)));
  Tensor<double> x = wide({N, in}, seed, 1), weight = wide({out, in}, seed + 1, 0.1),
                 dy = wide({N, out}, seed + 2, 1e-3);
};

RC_GTEST_PROP(LinearFp8Reference, EveryGemmReadsItsOwnOrientationOfTheSpecsCodes, ()) {
  const Drawn d;
  const auto x = quantised(d.x, d.recipe, Role::activation);
  const auto weight = quantised(d.weight, d.recipe, Role::weight);
  ASSAY_RC_CLOSE(values(linear::forward(d.x, d.weight, d.recipe)), values(product(x, weight)),
                 Allowed::exact());

  const auto gradient = linear::backward(d.dy, d.x, d.weight, d.recipe);
  const auto dx = product(quantised(d.dy, d.recipe, Role::gradient),
                          quantised(transposed(d.weight), d.recipe, Role::weight));
  const auto dweight = product(quantised(transposed(d.dy), d.recipe, Role::gradient),
                               quantised(transposed(d.x), d.recipe, Role::activation));
  ASSAY_RC_CLOSE(values(gradient.dx), values(dx), Allowed::exact());
  ASSAY_RC_CLOSE(values(gradient.dweight), values(dweight), Allowed::exact());
}

TEST(LinearFp8Reference, RecipeNoneIsTheLinearAsItWas) {
  const auto x = tests::normal({3, 5}, 1), weight = tests::normal({4, 5}, 2), dy = tests::normal({3, 4}, 3);
  ASSAY_EXPECT_CLOSE(values(linear::forward(x, weight, Recipe::none)), values(linear::forward(x, weight)),
                     Allowed::exact());
  const auto plain = linear::backward(dy, x, weight), none = linear::backward(dy, x, weight, Recipe::none);
  ASSAY_EXPECT_CLOSE(values(none.dx), values(plain.dx), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(none.dweight), values(plain.dweight), Allowed::exact());
}

/// |exact - quantised| of every entry's value, which the cast's bound allows.
double entry_bound(const Matrix& q, const Tensor<double>& x, Index r, Index c) {
  const double s = q.scale(r, c);
  return s * spec::quantise::cast_bound(q.format, x(r, c) / s);
}

RC_GTEST_PROP(LinearFp8Reference, DiffersFromTheExactLinearByNoMoreThanItsCasts, ()) {
  const Drawn d;
  const auto x = quantised(d.x, d.recipe, Role::activation);
  const auto weight = quantised(d.weight, d.recipe, Role::weight);
  Tensor<double> bound({d.N, d.out});
  for (Index n = 0; n < d.N; ++n)
    for (Index o = 0; o < d.out; ++o) {
      double magnitudes = 0;
      for (Index i = 0; i < d.in; ++i) {
        const double of_x = entry_bound(x, d.x, n, i), of_weight = entry_bound(weight, d.weight, o, i);
        bound(n, o) += std::abs(d.x(n, i)) * of_weight + std::abs(d.weight(o, i)) * of_x + of_x * of_weight;
        magnitudes += (std::abs(d.x(n, i)) + of_x) * (std::abs(d.weight(o, i)) + of_weight);
      }
      bound(n, o) += 2 * gamma(static_cast<double>(d.in) + 2, unit_roundoff(Dtype::f64)) * magnitudes;
    }
  const auto plain = linear::forward(d.x, d.weight), fp8 = linear::forward(d.x, d.weight, d.recipe);
  ASSAY_RC_CLOSE(values(fp8), values(plain), Allowed::elementwise(values(bound).data));
  if (d.in * d.N > 100) RC_ASSERT((fp8.flat() != plain.flat()).any());
}

RC_GTEST_PROP(LinearFp8Reference, OfValuesThatFp8HoldsItIsExactAndSoIsItsGradient, ()) {
  // A tensor's FP8 values are the same both ways and stay what they are when quantised again.
  const Drawn d;
  const auto held = [&](const Tensor<double>& tensor, Role role) {
    return product(quantised(tensor, Recipe::fp8_tensor, role), [&] {
      Tensor<double> one({tensor.extent(1), tensor.extent(1)});
      for (Index i = 0; i < tensor.extent(1); ++i) one(i, i) = 1;
      return quantised(one, Recipe::fp8_tensor, Role::weight);
    }());
  };
  const auto x = held(d.x, Role::activation), weight = held(d.weight, Role::weight),
             dy = held(d.dy, Role::gradient);
  ASSAY_RC_CLOSE(values(linear::forward(x, weight, Recipe::fp8_tensor)), values(linear::forward(x, weight)),
                 Allowed::exact());
  const auto fp8 = linear::backward(dy, x, weight, Recipe::fp8_tensor);
  const auto plain = linear::backward(dy, x, weight);
  ASSAY_RC_CLOSE(values(fp8.dx), values(plain.dx), Allowed::exact());
  ASSAY_RC_CLOSE(values(fp8.dweight), values(plain.dweight), Allowed::exact());
}

TEST(LinearFp8Reference, BackwardMatchesCentralDifferenceOfTheLinearItStandsFor) {
  // fp8_tensor: y = q(x) q(W)^T with the FP8 values held still, so its derivatives in them are
  // straight-through's.
  const auto x = tests::normal({4, 6}, 1), weight = tests::normal({5, 6}, 2);
  const auto x_q = quantised(x, Recipe::fp8_tensor, Role::activation);
  const auto w_q = quantised(weight, Recipe::fp8_tensor, Role::weight);
  Tensor<double> at_x(x.shape()), at_w(weight.shape()), dy({4, 5});
  for (Index i = 0; i < x.size(); ++i) at_x[i] = x_q.value(i / 6, i % 6);
  for (Index i = 0; i < weight.size(); ++i) at_w[i] = w_q.value(i / 6, i % 6);
  for (Index i = 0; i < dy.size(); ++i) dy[i] = (i % 7 - 3) * 0.25;  // E5M2 holds these
  const auto gradient = linear::backward(dy, x, weight, Recipe::fp8_tensor);
  ASSAY_EXPECT_CLOSE(
      values(gradient.dx),
      tests::central_difference(
          [&](const auto& moved) { return tests::dot(dy, linear::forward(moved, at_w)); }, at_x),
      Allowed::relative(1e-7));
  ASSAY_EXPECT_CLOSE(
      values(gradient.dweight),
      tests::central_difference(
          [&](const auto& moved) { return tests::dot(dy, linear::forward(at_x, moved)); }, at_w),
      Allowed::relative(1e-7));
}

TEST(LinearFp8Reference, NaNOfOneRowReachesAllThatReadItsBlock) {
  auto x = tests::normal({3, 4}, 1);
  const auto weight = tests::normal({2, 4}, 2);
  x(1, 2) = NAN;
  const auto tensor = linear::forward(x, weight, Recipe::fp8_tensor);
  EXPECT_TRUE(tensor.flat().isNaN().all());  // one scale for all
  const auto block = linear::forward(x, weight, Recipe::fp8_block);
  for (Index n = 0; n < 3; ++n)
    for (Index o = 0; o < 2; ++o) EXPECT_EQ(std::isnan(block(n, o)), n == 1);
}

RC_GTEST_PROP(LinearFp8Reference, TensorCoresStayWithinTheirBoundsOfIt, ()) {
  const Drawn d;
  const auto x = quantised(d.x, d.recipe, Role::activation);
  const auto weight = quantised(d.weight, d.recipe, Role::weight);
  const auto y = linear::forward(d.x, d.weight, d.recipe);
  using spec::fp8_gemm::Accumulation;
  for (const auto accumulation :
       {Accumulation::fp32, Accumulation::hopper, Accumulation::hopper_fast, Accumulation::blackwell}) {
    Tensor<double> summed(y.shape()), bound(y.shape());
    for (Index n = 0; n < d.N; ++n)
      for (Index o = 0; o < d.out; ++o) {
        const auto a = spec::fp8_gemm::operand(x, n), b = spec::fp8_gemm::operand(weight, o);
        summed(n, o) = spec::fp8_gemm::sum(accumulation, a, b);
        bound(n, o) = spec::fp8_gemm::running_bound(accumulation, a, b);
      }
    ASSAY_RC_CLOSE(values(summed), values(y), Allowed::elementwise(values(bound).data));
  }
}

}  // namespace
}  // namespace assay::reference::linear_fp8_test
