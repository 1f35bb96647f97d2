// labels: unit property golden
#include "reference/ops/rms_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::rms_norm_test {
namespace {

using tests::Allowed;
using tests::values;

constexpr double eps = 1e-5;

TEST(RmsNormReference, ForwardGivesTheSpecExample) {
  // spec/ops/rms_norm/rms_norm.md: x = (3, 4), g = (1, 2), eps = 0.5: mean square 12.5, rstd = 1/sqrt(13).
  const auto out =
      rms_norm::forward<double>(Tensor<double>({1, 2}, {3, 4}), Tensor<double>({2}, {1, 2}), 0.5);
  ASSAY_EXPECT_CLOSE(values(out.y), (tests::Values{{1, 2}, {3 / std::sqrt(13.0), 8 / std::sqrt(13.0)}}),
                     Allowed::relative(4 * unit_roundoff(Dtype::f64)));
}

TEST(RmsNormReference, C1RejectsAGainOfAnotherSize) {
  EXPECT_THROW(rms_norm::forward(tests::normal({2, 4}, 1), tests::normal({3}, 2), eps), SpecError);
}

RC_GTEST_PROP(RmsNormReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 4), D = *rc::gen::inRange(1, 9);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto x = tests::normal({N, D}, seed), gain = tests::normal({D}, seed + 1),
             dy = tests::normal({N, D}, seed + 2);
  const auto rstd = rms_norm::forward(x, gain, 0.1).rstd;
  const auto gradient = rms_norm::backward(dy, x, gain, rstd);
  ASSAY_RC_CLOSE(
      values(gradient.dx),
      tests::central_difference(
          [&](const auto& moved) { return tests::dot(dy, rms_norm::forward(moved, gain, 0.1).y); }, x),
      Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(
      values(gradient.dgain),
      tests::central_difference(
          [&](const auto& moved) { return tests::dot(dy, rms_norm::forward(x, moved, 0.1).y); }, gain),
      Allowed::relative(1e-7));
}

RC_GTEST_PROP(RmsNormReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(1, 5), D = *rc::gen::inRange(1, 17);
  const auto x = tests::counted(tests::normal({N, D}, 1)), gain = tests::counted(tests::normal({D}, 2));
  rms_norm::Forward<Counted> out;
  const Count forward = tests::operations_of([&] { out = rms_norm::forward(x, gain, eps); });
  const Count backward = tests::operations_of([&] { rms_norm::backward(x, x, gain, out.rstd); });
  RC_ASSERT((forward == spec::rms_norm::forward_flops({.N = N, .D = D}).vector));
  RC_ASSERT((backward == spec::rms_norm::backward_flops({.N = N, .D = D}).vector));
}

RC_GTEST_PROP(RmsNormReference, ScalingInputAndEpsLeavesOutput, ()) {
  const Index D = *rc::gen::inRange(1, 17);
  const auto x = tests::normal({2, D}, *rc::gen::arbitrary<std::uint64_t>());
  const auto gain = tests::normal({D}, 7);
  auto doubled = x;
  doubled.flat() *= 2;  // a power of two: the scaling itself rounds nothing
  ASSAY_RC_CLOSE(values(rms_norm::forward(doubled, gain, 4 * eps).y),
                 values(rms_norm::forward(x, gain, eps).y), Allowed::exact());
}

}  // namespace
}  // namespace assay::reference::rms_norm_test
