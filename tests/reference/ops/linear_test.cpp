// labels: unit property golden
#include "reference/ops/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/ops/linear/linear.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::linear_test {
namespace {

using tests::Allowed;
using tests::values;

TEST(LinearReference, GivesTheSpecExample) {
  // spec/ops/linear/linear.md; small integers, so every sum is exact.
  const Tensor<double> x({1, 2}, {1, 2}), weight({3, 2}, {3, 4, 5, 6, -1, 1});
  ASSAY_EXPECT_CLOSE(values(linear::forward(x, weight)), (tests::Values{{1, 3}, {11, 17, 1}}),
                     Allowed::exact());
  const auto gradient = linear::backward(Tensor<double>({1, 3}, {1, 0, -1}), x, weight);
  ASSAY_EXPECT_CLOSE(values(gradient.dx), (tests::Values{{1, 2}, {4, 3}}), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dweight), (tests::Values{{3, 2}, {1, 2, 0, 0, -1, -2}}),
                     Allowed::exact());
}

TEST(LinearReference, MatchesTorchFloat64) {
  for (const char* name : {"basic", "one_row", "one_output"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/linear/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto gradient = linear::backward(tensor("dy"), tensor("x"), tensor("weight"));
    ASSAY_EXPECT_CLOSE(values(linear::forward(tensor("x"), tensor("weight"))), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dweight), golden.tensor("dweight"), Allowed::relative(1e-10));
  }
}

TEST(LinearReference, C1RejectsAWeightForRowsOfAnotherSize) {
  EXPECT_THROW(linear::forward(tests::normal({2, 4}, 1), tests::normal({3, 5}, 2)), SpecError);
}

TEST(LinearReference, C2RejectsEmptyRows) {
  EXPECT_THROW(linear::forward(Tensor<double>({2, 0}), Tensor<double>({3, 0})), SpecError);
}

TEST(LinearReference, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_THROW(linear::backward(tests::normal({2, 4}, 1), tests::normal({2, 4}, 2), tests::normal({3, 4}, 3)),
               SpecError);
}

TEST(LinearReference, KeepsTheLeadingAxesOfX) {
  EXPECT_EQ(linear::forward(tests::normal({2, 3, 4}, 1), tests::normal({5, 4}, 2)).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(linear::forward(Tensor<double>({0, 4}), tests::normal({5, 4}, 2)).shape(), (Shape{0, 5}));
}

RC_GTEST_PROP(LinearReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 4), in = *rc::gen::inRange(1, 6), out = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto x = tests::normal({N, in}, seed), weight = tests::normal({out, in}, seed + 1);
  const auto dy = tests::normal({N, out}, seed + 2);
  const auto gradient = linear::backward(dy, x, weight);
  const auto by_x = [&](const auto& moved) { return tests::dot(dy, linear::forward(moved, weight)); };
  const auto by_weight = [&](const auto& moved) { return tests::dot(dy, linear::forward(x, moved)); };
  ASSAY_RC_CLOSE(values(gradient.dx), tests::central_difference(by_x, x), Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dweight), tests::central_difference(by_weight, weight),
                 Allowed::relative(1e-7));
}

RC_GTEST_PROP(LinearReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 5), in = *rc::gen::inRange(1, 9), out = *rc::gen::inRange(1, 9);
  const auto x = tests::counted(tests::normal({N, in}, 1)),
             weight = tests::counted(tests::normal({out, in}, 2));
  const auto dy = tests::counted(tests::normal({N, out}, 3));
  const spec::linear::Shape shape{.N = N, .in = in, .out = out};
  RC_ASSERT(tests::operations_of([&] { linear::forward(x, weight); }) ==
            spec::linear::forward_flops(shape).matmul);
  RC_ASSERT(tests::operations_of([&] { linear::backward(dy, x, weight); }) ==
            spec::linear::backward_flops(shape).matmul);
}

RC_GTEST_PROP(LinearReference, IsLinearInXAndInTheWeight, ()) {
  const Index N = *rc::gen::inRange(1, 4), in = *rc::gen::inRange(1, 9), out = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto a = tests::normal({N, in}, seed), b = tests::normal({N, in}, seed + 1);
  const auto weight = tests::normal({out, in}, seed + 2);
  auto sum = a;
  sum.flat() += b.flat();
  auto together = linear::forward(a, weight);
  together.flat() += linear::forward(b, weight).flat();
  // T2 with one more rounding for a + b and one for the sum of the outputs, against sum_i (|a| + |b|) |w|.
  auto magnitude = a, weight_magnitude = weight;
  magnitude.flat() = a.flat().abs() + b.flat().abs();
  weight_magnitude.flat() = weight.flat().abs();
  auto bound = linear::forward(magnitude, weight_magnitude);
  bound.flat() *= 2 * gamma(static_cast<double>(in) + 3, unit_roundoff(Dtype::f64));
  ASSAY_RC_CLOSE(values(linear::forward(sum, weight)), values(together),
                 Allowed::elementwise(values(bound).data));

  auto doubled = weight;
  doubled.flat() *= 2;  // a power of two rounds nothing
  auto twice = linear::forward(a, weight);
  twice.flat() *= 2;
  ASSAY_RC_CLOSE(values(linear::forward(a, doubled)), values(twice), Allowed::exact());
}

RC_GTEST_PROP(LinearReference, RowsOfASplitBatchEqualThoseOfTheWhole, ()) {
  const Index N = *rc::gen::inRange(2, 6), in = *rc::gen::inRange(1, 9), out = *rc::gen::inRange(1, 6);
  const Index first = *rc::gen::inRange<Index>(1, N);
  const auto x = tests::normal({N, in}, *rc::gen::arbitrary<std::uint64_t>());
  const auto weight = tests::normal({out, in}, 1), dy = tests::normal({N, out}, 2);
  const auto rows = [](const Tensor<double>& tensor, Index begin, Index count) {
    Tensor<double> part({count, tensor.extent(-1)});
    part.flat() = tensor.flat().segment(begin * part.extent(1), part.size());
    return part;
  };
  const auto y = linear::forward(x, weight);
  const auto whole = linear::backward(dy, x, weight);
  auto summed = Tensor<double>(weight.shape());
  for (const auto& [begin, count] : {std::pair{Index{0}, first}, std::pair{first, N - first}}) {
    const auto part = rows(x, begin, count);
    ASSAY_RC_CLOSE(values(linear::forward(part, weight)), values(rows(y, begin, count)), Allowed::exact());
    const auto gradient = linear::backward(rows(dy, begin, count), part, weight);
    ASSAY_RC_CLOSE(values(gradient.dx), values(rows(whole.dx, begin, count)), Allowed::exact());
    summed.flat() += gradient.dweight.flat();
  }
  // Only the order of the sum over rows differs: T2 over N against sum_n |dy| |x|.
  auto dy_magnitude = dy, x_magnitude = x;
  dy_magnitude.flat() = dy.flat().abs();
  x_magnitude.flat() = x.flat().abs();
  auto bound = linear::backward(dy_magnitude, x_magnitude, weight).dweight;
  bound.flat() *= 2 * gamma(static_cast<double>(N) + 1, unit_roundoff(Dtype::f64));
  ASSAY_RC_CLOSE(values(summed), values(whole.dweight), Allowed::elementwise(values(bound).data));
}

}  // namespace
}  // namespace assay::reference::linear_test
