// labels: unit property golden
#include "reference/ops/swiglu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/ops/swiglu/swiglu.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::swiglu_test {
namespace {

using swiglu::Activation;
using tests::Allowed;
using tests::values;
using enum spec::swiglu::Activation;

Activation draw_activation() { return *rc::gen::element(silu, gelu_tanh); }

const double u = unit_roundoff(Dtype::f64);

TEST(SwigluReference, GivesTheSpecExample) {
  // spec/ops/swiglu/swiglu.md: gate = ln 3 makes sigma = 3/4.
  const double ln3 = std::log(3.0);
  const Tensor<double> gate({1, 1}, {ln3}), up({1, 1}, {4}), dy({1, 1}, {2});
  ASSAY_EXPECT_CLOSE(values(swiglu::forward(gate, up, silu)), (tests::Values{{1, 1}, {3 * ln3}}),
                     Allowed::relative(gamma(8, u)));
  const auto gradient = swiglu::backward(dy, gate, up, silu);
  ASSAY_EXPECT_CLOSE(values(gradient.dup), (tests::Values{{1, 1}, {1.5 * ln3}}),
                     Allowed::relative(gamma(8, u)));
  ASSAY_EXPECT_CLOSE(values(gradient.dgate), (tests::Values{{1, 1}, {6 + 1.5 * ln3}}),
                     Allowed::relative(gamma(14, u)));
}

TEST(SwigluReference, GivesTheSpecExampleOfGelu) {
  const Tensor<double> gate({1, 1}, {0}), up({1, 1}, {4}), dy({1, 1}, {2});
  EXPECT_EQ(swiglu::forward(gate, up, gelu_tanh)[0], 0);
  EXPECT_EQ(swiglu::backward(dy, gate, up, gelu_tanh).dup[0], 0);
  EXPECT_EQ(swiglu::backward(dy, gate, up, gelu_tanh).dgate[0], 4);
}

TEST(SwigluReference, MatchesTorchFloat64) {
  for (const std::string name : {"basic", "saturated", "gelu_tanh", "gelu_tanh_saturated"}) {
    SCOPED_TRACE(name);
    const Activation activation = name.starts_with("gelu_tanh") ? gelu_tanh : silu;
    const auto golden = tests::load_golden("ops/swiglu/" + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto gradient = swiglu::backward(tensor("dy"), tensor("gate"), tensor("up"), activation);
    ASSAY_EXPECT_CLOSE(values(swiglu::forward(tensor("gate"), tensor("up"), activation)), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dgate), golden.tensor("dgate"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dup), golden.tensor("dup"), Allowed::relative(1e-10));
  }
}

TEST(SwigluReference, C1RejectsAnotherShape) {
  const auto a = tests::normal({2, 3}, 1), b = tests::normal({3, 2}, 2);
  EXPECT_THROW(swiglu::forward(a, b, silu), SpecError);
  EXPECT_THROW(swiglu::backward(a, a, b, silu), SpecError);
  EXPECT_THROW(swiglu::backward(b, a, a, silu), SpecError);
}

TEST(SwigluReference, C2RejectsEmptyRows) {
  EXPECT_THROW(swiglu::forward(Tensor<double>({2, 0}), Tensor<double>({2, 0}), silu), SpecError);
}

TEST(SwigluReference, FarGatesReachTheirLimits) {
  // exp(-z) overflows for the first and vanishes for the last: the activation is 0 and the identity there.
  const Tensor<double> gate({1, 3}, {-800, 0, 800}), up({1, 3}, {2, 2, 2}), dy({1, 3}, {1, 1, 1});
  for (const Activation activation : {silu, gelu_tanh}) {
    ASSAY_EXPECT_CLOSE(values(swiglu::forward(gate, up, activation)), (tests::Values{{1, 3}, {0, 0, 1600}}),
                       Allowed::exact());
    const auto gradient = swiglu::backward(dy, gate, up, activation);
    ASSAY_EXPECT_CLOSE(values(gradient.dgate), (tests::Values{{1, 3}, {0, 1, 2}}), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(gradient.dup), (tests::Values{{1, 3}, {0, 0, 800}}), Allowed::exact());
  }
}

RC_GTEST_PROP(SwigluReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 4), F = *rc::gen::inRange(1, 8);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Activation activation = draw_activation();
  const auto gate = tests::normal({N, F}, seed), up = tests::normal({N, F}, seed + 1);
  const auto dy = tests::normal({N, F}, seed + 2);
  const auto gradient = swiglu::backward(dy, gate, up, activation);
  const auto by_gate = [&](const auto& moved) {
    return tests::dot(dy, swiglu::forward(moved, up, activation));
  };
  const auto by_up = [&](const auto& moved) {
    return tests::dot(dy, swiglu::forward(gate, moved, activation));
  };
  ASSAY_RC_CLOSE(values(gradient.dgate), tests::central_difference(by_gate, gate), Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dup), tests::central_difference(by_up, up), Allowed::relative(1e-7));
}

RC_GTEST_PROP(SwigluReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 5), F = *rc::gen::inRange(1, 9);
  const auto gate = tests::counted(tests::normal({N, F}, 1)), up = tests::counted(tests::normal({N, F}, 2));
  const spec::swiglu::Shape shape{.N = N, .F = F};
  const Activation activation = draw_activation();
  RC_ASSERT(tests::operations_of([&] { swiglu::forward(gate, up, activation); }) ==
            spec::swiglu::forward_flops(shape, activation).vector);
  RC_ASSERT(tests::operations_of([&] { swiglu::backward(up, gate, up, activation); }) ==
            spec::swiglu::backward_flops(shape, activation).vector);
}

RC_GTEST_PROP(SwigluReference, IsLinearInUp, ()) {
  const auto gate = tests::normal({2, 5}, *rc::gen::arbitrary<std::uint64_t>());
  const auto up = tests::normal({2, 5}, *rc::gen::arbitrary<std::uint64_t>());
  const Activation activation = draw_activation();
  auto doubled = up, twice = swiglu::forward(gate, up, activation);
  doubled.flat() *= 2;  // a power of two rounds nothing
  twice.flat() *= 2;
  ASSAY_RC_CLOSE(values(swiglu::forward(gate, doubled, activation)), values(twice), Allowed::exact());
}

RC_GTEST_PROP(SwigluReference, TheActivationOfXMinusThatOfMinusXIsX, ()) {
  // z is odd and sigma(z) + sigma(-z) = 1, so x sigma(z) - (-x) sigma(-z) = x. z and -z have the same bits,
  // so its rounding moves both sigmas by the same: each side has at most 5 roundings of a part of |x|.
  const Index F = *rc::gen::inRange<Index>(1, 9);
  const Activation activation = draw_activation();
  const auto x = tests::normal({1, F}, *rc::gen::arbitrary<std::uint64_t>(), 3);
  auto minus_x = x, ones = x;
  minus_x.flat() = -x.flat();
  ones.flat().setOnes();
  auto difference = swiglu::forward(x, ones, activation);
  difference.flat() -= swiglu::forward(minus_x, ones, activation).flat();
  auto bound = x;
  bound.flat() = gamma(6, u) * x.flat().abs();
  ASSAY_RC_CLOSE(values(difference), values(x), Allowed::elementwise(values(bound).data));
}

}  // namespace
}  // namespace assay::reference::swiglu_test
