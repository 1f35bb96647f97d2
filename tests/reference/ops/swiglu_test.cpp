// labels: unit property golden
#include "reference/ops/swiglu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/ops/swiglu.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::swiglu_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

TEST(SwigluReference, GivesTheSpecExample) {
  // spec/ops/swiglu.md: gate = ln 3 makes sigma = 3/4.
  const double ln3 = std::log(3.0);
  const Tensor<double> gate({1, 1}, {ln3}), up({1, 1}, {4}), dy({1, 1}, {2});
  ASSAY_EXPECT_CLOSE(values(swiglu::forward(gate, up)), (tests::Values{{1, 1}, {3 * ln3}}),
                     Allowed::relative(gamma(8, u)));
  const auto gradient = swiglu::backward(dy, gate, up);
  ASSAY_EXPECT_CLOSE(values(gradient.dup), (tests::Values{{1, 1}, {1.5 * ln3}}),
                     Allowed::relative(gamma(8, u)));
  ASSAY_EXPECT_CLOSE(values(gradient.dgate), (tests::Values{{1, 1}, {6 + 1.5 * ln3}}),
                     Allowed::relative(gamma(14, u)));
}

TEST(SwigluReference, MatchesTorchFloat64) {
  for (const char* name : {"basic", "saturated"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/swiglu/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto gradient = swiglu::backward(tensor("dy"), tensor("gate"), tensor("up"));
    ASSAY_EXPECT_CLOSE(values(swiglu::forward(tensor("gate"), tensor("up"))), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dgate), golden.tensor("dgate"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dup), golden.tensor("dup"), Allowed::relative(1e-10));
  }
}

TEST(SwigluReference, C1RejectsAnotherShape) {
  const auto a = tests::normal({2, 3}, 1), b = tests::normal({3, 2}, 2);
  EXPECT_THROW(swiglu::forward(a, b), SpecError);
  EXPECT_THROW(swiglu::backward(a, a, b), SpecError);
  EXPECT_THROW(swiglu::backward(b, a, a), SpecError);
}

TEST(SwigluReference, C2RejectsEmptyRows) {
  EXPECT_THROW(swiglu::forward(Tensor<double>({2, 0}), Tensor<double>({2, 0})), SpecError);
}

TEST(SwigluReference, FarGatesReachTheirLimits) {
  // exp(-gate) overflows for the first and vanishes for the last: silu is 0 and the identity there.
  const Tensor<double> gate({1, 3}, {-800, 0, 800}), up({1, 3}, {2, 2, 2}), dy({1, 3}, {1, 1, 1});
  ASSAY_EXPECT_CLOSE(values(swiglu::forward(gate, up)), (tests::Values{{1, 3}, {0, 0, 1600}}),
                     Allowed::exact());
  const auto gradient = swiglu::backward(dy, gate, up);
  ASSAY_EXPECT_CLOSE(values(gradient.dgate), (tests::Values{{1, 3}, {0, 1, 2}}), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dup), (tests::Values{{1, 3}, {0, 0, 800}}), Allowed::exact());
}

RC_GTEST_PROP(SwigluReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 4), F = *rc::gen::inRange(1, 8);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto gate = tests::normal({N, F}, seed), up = tests::normal({N, F}, seed + 1);
  const auto dy = tests::normal({N, F}, seed + 2);
  const auto gradient = swiglu::backward(dy, gate, up);
  const auto by_gate = [&](const auto& moved) { return tests::dot(dy, swiglu::forward(moved, up)); };
  const auto by_up = [&](const auto& moved) { return tests::dot(dy, swiglu::forward(gate, moved)); };
  ASSAY_RC_CLOSE(values(gradient.dgate), tests::central_difference(by_gate, gate), Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dup), tests::central_difference(by_up, up), Allowed::relative(1e-7));
}

RC_GTEST_PROP(SwigluReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 5), F = *rc::gen::inRange(1, 9);
  const auto gate = tests::counted(tests::normal({N, F}, 1)), up = tests::counted(tests::normal({N, F}, 2));
  const spec::swiglu::Shape shape{.N = N, .F = F};
  RC_ASSERT(tests::operations_of([&] { swiglu::forward(gate, up); }) ==
            spec::swiglu::forward_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { swiglu::backward(up, gate, up); }) ==
            spec::swiglu::backward_flops(shape).vector);
}

RC_GTEST_PROP(SwigluReference, IsLinearInUp, ()) {
  const auto gate = tests::normal({2, 5}, *rc::gen::arbitrary<std::uint64_t>());
  const auto up = tests::normal({2, 5}, *rc::gen::arbitrary<std::uint64_t>());
  auto doubled = up, twice = swiglu::forward(gate, up);
  doubled.flat() *= 2;  // a power of two rounds nothing
  twice.flat() *= 2;
  ASSAY_RC_CLOSE(values(swiglu::forward(gate, doubled)), values(twice), Allowed::exact());
}

RC_GTEST_PROP(SwigluReference, SiluOfXMinusSiluOfMinusXIsX, ()) {
  // sigma(x) + sigma(-x) = 1, so x sigma(x) - (-x) sigma(-x) = x; each side has at most 5 roundings of a part
  // of |x|.
  const Index F = *rc::gen::inRange(1, 9);
  const auto x = tests::normal({1, F}, *rc::gen::arbitrary<std::uint64_t>(), 3);
  auto minus_x = x, ones = x;
  minus_x.flat() = -x.flat();
  ones.flat().setOnes();
  auto difference = swiglu::forward(x, ones);
  difference.flat() -= swiglu::forward(minus_x, ones).flat();
  auto bound = x;
  bound.flat() = gamma(6, u) * x.flat().abs();
  ASSAY_RC_CLOSE(values(difference), values(x), Allowed::elementwise(values(bound).data));
}

}  // namespace
}  // namespace assay::reference::swiglu_test
