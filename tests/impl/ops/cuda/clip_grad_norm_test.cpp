// labels: gpu parity property
#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/clip_grad_norm_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_clip_grad_norm_test {
namespace {

TEST(ClipGradNormCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::clip_grad_norm_matches_spec(at::kCUDA); }));
}

TEST(ClipGradNormCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor gradient = tests::normal({1000003}, 1, at::kFloat).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] { return std::vector{clip_grad_norm::sum_of_squares(gradient)}; }));
}

TEST(ClipGradNormCuda, ASumKeepsInfinityAndNotANumber) {
  ASSAY_NEEDS_GPU();
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor gradient = at::ones({1000}, at::TensorOptions(at::kCUDA));
    gradient[777] = bad;
    EXPECT_FALSE(std::isfinite(clip_grad_norm::sum_of_squares(gradient).item<double>()));
  }
}

}  // namespace
}  // namespace assay::impl::cuda_clip_grad_norm_test
