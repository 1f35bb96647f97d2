// labels: unit property golden
#include "reference/ops/grouped_linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/linear.hpp"
#include "reference/ops/quantise.hpp"
#include "spec/ops/grouped_linear/grouped_linear.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::grouped_linear_test {
namespace {

using tests::Allowed;
using tests::values;

/// Offsets of 1 to 5 experts with 0 to 3 rows each.
Ids draw_offsets() {
  const auto counts = *rc::gen::container<Ids>(5, rc::gen::inRange<Index>(0, 4));
  const auto experts = *rc::gen::inRange<std::size_t>(1, 6);
  Ids offsets{0};
  for (std::size_t e = 0; e < experts; ++e) offsets.push_back(offsets.back() + counts[e]);
  return offsets;
}

TEST(GroupedLinearReference, GivesTheSpecExample) {
  const Tensor<double> x({2, 1}, {1, 2}), weights({2, 1, 1}, {3, 5}), dy({2, 1}, {1, 1});
  const Ids offsets{0, 2, 2};
  EXPECT_EQ(values(grouped_linear::forward(x, weights, offsets)).data, (std::vector<double>{3, 6}));
  const auto gradient = grouped_linear::backward(dy, x, weights, offsets);
  EXPECT_EQ(values(gradient.dx).data, (std::vector<double>{3, 3}));
  EXPECT_EQ(values(gradient.dweights).data, (std::vector<double>{3, 0}));
}

TEST(GroupedLinearReference, MatchesTorchFloat64) {
  for (const std::string name : {"basic", "empty_groups"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden("ops/grouped_linear/" + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const Ids offsets = golden.ids("offsets");
    ASSAY_EXPECT_CLOSE(values(grouped_linear::forward(tensor("x"), tensor("weights"), offsets)),
                       golden.tensor("y"), Allowed::relative(1e-10));
    const auto gradient = grouped_linear::backward(tensor("dy"), tensor("x"), tensor("weights"), offsets);
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dweights), golden.tensor("dweights"), Allowed::relative(1e-10));
  }
}

TEST(GroupedLinearReference, ConstraintsAreHeld) {
  const auto x = tests::normal({3, 2}, 1), weights = tests::normal({2, 4, 2}, 2);
  EXPECT_THROW(grouped_linear::forward(x, tests::normal({2, 4, 3}, 2), {0, 1, 3}), SpecError);
  EXPECT_THROW(grouped_linear::forward(x, weights, {0, 1, 2}), SpecError);
  EXPECT_THROW(grouped_linear::forward(x, Tensor<double>({2, 0, 2}), {0, 1, 3}), SpecError);
  EXPECT_THROW(grouped_linear::backward(x, x, weights, {0, 1, 3}), SpecError);
}

/// Every expert's rows are a linear of their own, bit for bit, and an expert without rows changes nothing.
RC_GTEST_PROP(GroupedLinearReference, IsALinearForEachExpert, (std::uint64_t seed)) {
  const Ids offsets = draw_offsets();
  const Index X = static_cast<Index>(offsets.size()) - 1, R = offsets.back();
  const Index in = *rc::gen::inRange<Index>(1, 5), out = *rc::gen::inRange<Index>(1, 5);
  const auto x = tests::normal({R, in}, seed), weights = tests::normal({X, out, in}, seed + 1),
             dy = tests::normal({R, out}, seed + 2);
  const auto y = grouped_linear::forward(x, weights, offsets);
  const auto gradient = grouped_linear::backward(dy, x, weights, offsets);
  for (Index e = 0; e < X; ++e) {
    const Index first = offsets[static_cast<std::size_t>(e)],
                rows = offsets[static_cast<std::size_t>(e) + 1] - first;
    const auto part = [&](const Tensor<double>& all, Index width) {
      Tensor<double> some({rows, width});
      some.flat() = all.flat().segment(first * width, rows * width);
      return some;
    };
    Tensor<double> weight({out, in});
    weight.flat() = weights.flat().segment(e * out * in, out * in);
    const auto alone = linear::forward(part(x, in), weight);
    const auto back = linear::backward(part(dy, out), part(x, in), weight);
    RC_ASSERT((alone.flat() == part(y, out).flat()).all());
    RC_ASSERT((back.dx.flat() == part(gradient.dx, in).flat()).all());
    RC_ASSERT((back.dweight.flat() == gradient.dweights.flat().segment(e * out * in, out * in)).all());
    if (rows == 0) RC_ASSERT((back.dweight.flat() == 0.0).all());
  }
}

/// With a recipe y and dx of each expert are those of a linear in FP8 of all weights' scale; dweights are
/// exact.
RC_GTEST_PROP(GroupedLinearReference, InFp8WeightsGradientsAloneAreOfValues, (std::uint64_t seed)) {
  using quantise::Along;
  using quantise::Role;
  constexpr auto recipe = grouped_linear::Recipe::fp8_tensor;
  const Ids offsets = draw_offsets();
  const Index X = static_cast<Index>(offsets.size()) - 1, R = offsets.back();
  const auto x = tests::normal({R, 5}, seed), weights = tests::normal({X, 3, 5}, seed + 1),
             dy = tests::normal({R, 3}, seed + 2);
  const auto read = [&](const Tensor<double>& of, Role role) {
    return quantise::read_by_gemm(of, recipe, role, Along::last);
  };
  const auto weights_read = read(weights, Role::weight);
  RC_ASSERT((grouped_linear::forward(x, weights, offsets, recipe).flat() ==
             grouped_linear::forward(read(x, Role::activation), weights_read, offsets).flat())
                .all());
  const auto gradient = grouped_linear::backward(dy, x, weights, offsets, recipe);
  RC_ASSERT((gradient.dx.flat() ==
             grouped_linear::backward(read(dy, Role::gradient), x, weights_read, offsets).dx.flat())
                .all());
  RC_ASSERT(
      (gradient.dweights.flat() == grouped_linear::backward(dy, x, weights, offsets).dweights.flat()).all());
}

RC_GTEST_PROP(GroupedLinearReference, BackwardMatchesCentralDifference, (std::uint64_t seed)) {
  Ids offsets = draw_offsets();
  offsets.push_back(offsets.back() + 1);
  const Index X = static_cast<Index>(offsets.size()) - 1, R = offsets.back();
  const Index in = *rc::gen::inRange<Index>(1, 4), out = *rc::gen::inRange<Index>(1, 4);
  const auto x = tests::normal({R, in}, seed), weights = tests::normal({X, out, in}, seed + 1),
             dy = tests::normal({R, out}, seed + 2);
  const auto gradient = grouped_linear::backward(dy, x, weights, offsets);
  const auto close = [](const Tensor<double>& actual, const tests::Values& expected) {
    const auto result =
        tests::close(values(actual), expected, Allowed::relative(1e-7), /*zeros_expected=*/true);
    if (!result) RC_FAIL(std::string(result.message()));
  };
  close(
      gradient.dx,
      tests::central_difference(
          [&](const auto& at) { return tests::dot(dy, grouped_linear::forward(at, weights, offsets)); }, x));
  close(
      gradient.dweights,
      tests::central_difference(
          [&](const auto& at) { return tests::dot(dy, grouped_linear::forward(x, at, offsets)); }, weights));
}

RC_GTEST_PROP(GroupedLinearReference, ExecutesExactlyTheFlopsOfTheSpec, (std::uint64_t seed)) {
  const Ids offsets = draw_offsets();
  const Index X = static_cast<Index>(offsets.size()) - 1, R = offsets.back();
  const Index in = *rc::gen::inRange<Index>(1, 4), out = *rc::gen::inRange<Index>(1, 4);
  const auto x = tests::counted(tests::normal({R, in}, seed)),
             weights = tests::counted(tests::normal({X, out, in}, seed)),
             dy = tests::counted(tests::normal({R, out}, seed));
  const spec::grouped_linear::Shape shape{.R = R, .in = in, .out = out, .X = X};
  RC_ASSERT(tests::operations_of([&] { grouped_linear::forward(x, weights, offsets); }) ==
            spec::grouped_linear::forward_flops(shape).matmul);
  RC_ASSERT(tests::operations_of([&] { grouped_linear::backward(dy, x, weights, offsets); }) ==
            spec::grouped_linear::backward_flops(shape).matmul);
}

}  // namespace
}  // namespace assay::reference::grouped_linear_test
