// labels: gpu parity property
#include "impl/ops/rms_norm/rms_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/rms_norm_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_rms_norm_test {
namespace {

TEST(RmsNormCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::rms_norm_matches_reference(at::kCUDA); }));
}

TEST(RmsNormCuda, OfASumIsBothApart) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::rms_norm_of_a_sum_is_both_apart(at::kCUDA); }));
}

TEST(RmsNormCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor x = tests::normal({3000, 2304}, 1, type).to(at::kCUDA),
                     dy = tests::normal({3000, 2304}, 2, type).to(at::kCUDA),
                     gain = x[0].to(tests::math_of(type));
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = rms_norm::forward(x, gain, 1e-5);
      at::Tensor dx = at::zeros_like(x), dgain = at::zeros_like(gain);
      const at::Tensor upstream = dy.clone();
      rms_norm::backward(upstream, x, gain, out.rstd, dx, dx, dgain);
      EXPECT_TRUE(tests::same_bits(upstream, out.y)) << type;
      return std::vector{out.y, out.rstd, dx, dgain};
    })) << type;
  }
}

TEST(RmsNormCuda, RowsTooLongForTheKernelStillMatchTheirOwnForward) {
  ASSAY_NEEDS_GPU();
  // A gradient of ones through a row of equal entries: x - mean is lost, and dgain is the row normalised.
  const at::Tensor x = at::full({2, 40001}, 2.0, at::TensorOptions(at::kCUDA).dtype(at::kDouble)),
                   gain = at::ones_like(x[0]);
  const auto out = rms_norm::forward(x, gain, 1e-5);
  at::Tensor dx = at::zeros_like(x), dgain = at::zeros_like(gain);
  rms_norm::backward(at::ones_like(x), x, gain, out.rstd, dx, dx, dgain);
  EXPECT_TRUE(at::allclose(dgain, out.y.sum(0), 1e-12, 0));
}

}  // namespace
}  // namespace assay::impl::cuda_rms_norm_test
