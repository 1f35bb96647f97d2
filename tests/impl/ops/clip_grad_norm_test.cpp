// labels: parity property
#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/clip_grad_norm_parity.hpp"

namespace assay::impl::clip_grad_norm_test {
namespace {

RC_GTEST_PROP(ClipGradNormImpl, MatchesSpec, ()) { parity::clip_grad_norm_matches_spec(at::kCPU); }

TEST(ClipGradNormImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor gradient = tests::normal({100003}, 1, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] { return std::vector{clip_grad_norm::sum_of_squares(gradient)}; }));
}

TEST(ClipGradNormImpl, CoefficientClipsOnlyAboveTheLimit) {
  EXPECT_EQ(clip_grad_norm::coefficient(0.5, 1), 1.0);
  EXPECT_EQ(clip_grad_norm::coefficient(0, 1), 1.0);
  EXPECT_EQ(clip_grad_norm::coefficient(4, 1), 1 / (4 + 1e-6));
}

TEST(ClipGradNormImpl, ASumKeepsInfinityAndNotANumber) {
  // The step is refused before the update, so they must not vanish on the way.
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor gradient = at::ones({1000});
    gradient[777] = bad;
    EXPECT_FALSE(std::isfinite(clip_grad_norm::sum_of_squares(gradient).item<double>()));
    EXPECT_FALSE(std::isfinite(clip_grad_norm::aten::sum_of_squares(gradient).item<double>()));
  }
}

TEST(ClipGradNormImpl, ConstraintsAreChecked) {
  EXPECT_EQ(tests::refusal([] { clip_grad_norm::coefficient(1, 0); }), "clip_grad_norm_c1");
  EXPECT_EQ(tests::refusal([] { clip_grad_norm::coefficient(std::nan(""), 1); }), "clip_grad_norm_c2");
}

}  // namespace
}  // namespace assay::impl::clip_grad_norm_test
