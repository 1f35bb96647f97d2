// labels: parity property
#include "impl/ops/rms_norm/rms_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/rms_norm.hpp"
#include "tests/impl/ops/parity/rms_norm_parity.hpp"
#include "tests/support/rms_norm_bounds.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::rms_norm_test {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

constexpr double eps = 1e-5;

RC_GTEST_PROP(RmsNormImpl, MatchesReference, ()) { parity::rms_norm_matches_reference(at::kCPU); }

RC_GTEST_PROP(RmsNormImpl, OfASumIsBothApart, ()) { parity::rms_norm_of_a_sum_is_both_apart(at::kCPU); }

RC_GTEST_PROP(RmsNormImpl, AgreesWithAutograd, ()) {
  const Index N = *rc::gen::inRange<Index>(1, 12), D = *rc::gen::inRange<Index>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor x = tests::normal({N, D}, seed, at::kDouble),
                   gain = tests::normal({D}, seed + 1, at::kDouble);
  const at::Tensor dy = tests::normal({N, D}, seed + 2, at::kDouble), leaf = tests::leaf(x),
                   gain_leaf = tests::leaf(gain);
  const auto theirs = tests::autograd(at::rms_norm(leaf, {D}, gain_leaf, eps), dy, {leaf, gain_leaf});
  const at::Tensor dx = at::zeros_like(x), dgain = at::zeros_like(gain);
  const auto rstd = rms_norm::forward(x, gain, eps).rstd;
  rms_norm::backward(dy.clone(), x, gain, rstd, dx, dx, dgain);
  const tests::RmsNormBounds bounds(tests::rounding_of(at::kDouble), exact(x), exact(gain), exact(dy),
                                    exact(rstd));
  ASSAY_RC_CLOSE(values(dx), values(theirs[0]), bounds.dx(exact(dx), reference::Tensor<double>({N, D})));
  ASSAY_RC_CLOSE(values(dgain), values(theirs[1]), bounds.dgain(reference::Tensor<double>({D})));
}

TEST(RmsNormImpl, SameBitsOnAnyNumberOfThreads) {
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor x = tests::normal({1000, 65}, 1, type),
                     gain = tests::normal({65}, 2, tests::math_of(type));
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = rms_norm::forward(x, gain, eps);
      at::Tensor dx = at::ones_like(x), dgain = at::zeros({65}, tests::math_of(type));
      const at::Tensor dy = x.clone();
      rms_norm::backward(dy, out.y, gain, out.rstd, dx, dx, dgain);
      return std::vector{out.y, out.rstd, dx, dgain, dy};
    })) << type;
  }
}

TEST(RmsNormImpl, RefusesAGainOfFewerBitsThanTheStatistics) {
  const at::Tensor x = at::ones({2, 4}, at::kBFloat16);
  EXPECT_THROW(rms_norm::forward(x, at::ones({4}, at::kBFloat16), eps), c10::Error);
  EXPECT_NO_THROW(rms_norm::forward(x, at::ones({4}), eps));
}

TEST(RmsNormImpl, RefusesAResidualOfAnotherShapeOrType) {
  const at::Tensor gain = at::ones({4});
  EXPECT_THROW(rms_norm::forward_of_sum(at::ones({2, 4}), at::ones({4}), gain, eps), c10::Error);
  EXPECT_THROW(rms_norm::forward_of_sum(at::ones({2, 4}), at::ones({2, 4}, at::kDouble), gain, eps),
               c10::Error);
}

TEST(RmsNormImpl, C1RejectsAGainOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { rms_norm::forward(at::ones({2, 4}), at::ones({3}), eps); }), "rms_norm_c1");
}

TEST(RmsNormImpl, C2RejectsAnEpsThatIsNotPositive) {
  EXPECT_EQ(tests::refusal([] { rms_norm::forward(at::ones({2, 4}), at::ones({4}), 0); }), "rms_norm_c2");
}

TEST(RmsNormImpl, C3RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { rms_norm::forward(at::ones({2, 0}), at::ones({0}), eps); }), "rms_norm_c3");
}

}  // namespace
}  // namespace assay::impl::rms_norm_test
