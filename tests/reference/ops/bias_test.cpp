// labels: unit property golden
#include "reference/ops/bias.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/ops/bias/bias.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::bias_test {
namespace {

using tests::Allowed;
using tests::values;

TEST(BiasReference, GivesTheSpecExample) {
  // spec/ops/bias/bias.md; small integers, so every sum is exact.
  const Tensor<double> x({2, 3}, {1, 2, 3, 4, 5, 6}), bias({3}, {10, 20, 30}),
      dy({2, 3}, {1, 0, -1, 2, 3, 4});
  ASSAY_EXPECT_CLOSE(values(bias::forward(x, bias)), (tests::Values{{2, 3}, {11, 22, 33, 14, 25, 36}}),
                     Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(bias::backward(dy)), (tests::Values{{3}, {3, 3, 3}}), Allowed::exact());
}

TEST(BiasReference, MatchesTorchFloat64) {
  for (const char* name : {"basic", "one_row", "one_output"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/bias/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    ASSAY_EXPECT_CLOSE(values(bias::forward(tensor("x"), tensor("bias"))), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(bias::backward(tensor("dy"))), golden.tensor("dbias"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(golden.tensor("dx"), golden.tensor("dy"), Allowed::exact());  // nothing to compute
  }
}

TEST(BiasReference, C1RejectsABiasForRowsOfAnotherSize) {
  EXPECT_THROW(bias::forward(tests::normal({2, 4}, 1), tests::normal({3}, 2)), SpecError);
}

TEST(BiasReference, C2RejectsEmptyRows) {
  EXPECT_THROW(bias::forward(Tensor<double>({2, 0}), Tensor<double>(Shape{0})), SpecError);
  EXPECT_THROW(bias::backward(Tensor<double>({2, 0})), SpecError);
}

RC_GTEST_PROP(BiasReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 6), out = *rc::gen::inRange(1, 8);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto x = tests::normal({N, out}, seed), b = tests::normal({out}, seed + 1);
  const auto dy = tests::normal({N, out}, seed + 2);
  const auto by_bias = [&](const auto& moved) { return tests::dot(dy, bias::forward(x, moved)); };
  ASSAY_RC_CLOSE(values(bias::backward(dy)), tests::central_difference(by_bias, b), Allowed::relative(1e-7));
}

RC_GTEST_PROP(BiasReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 6), out = *rc::gen::inRange(1, 9);
  const auto x = tests::counted(tests::normal({N, out}, 1)), b = tests::counted(tests::normal({out}, 2));
  const spec::bias::Shape shape{.N = N, .out = out};
  RC_ASSERT(tests::operations_of([&] { bias::forward(x, b); }) == spec::bias::forward_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { bias::backward(x); }) == spec::bias::backward_flops(shape).vector);
}

}  // namespace
}  // namespace assay::reference::bias_test
