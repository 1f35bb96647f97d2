// labels: unit
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "spec/error.hpp"

namespace assay::spec::clip_grad_norm_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ClipGradNormSpec, C1RejectsALimitThatIsNotPositive) {
  for (double max_norm : {0.0, -1.0, nan, infinity})
    EXPECT_THROW(clip_grad_norm::coefficient(1, max_norm), SpecError) << max_norm;
}

TEST(ClipGradNormSpec, C2RejectsANormThatIsNotFinite) {
  EXPECT_THROW(clip_grad_norm::coefficient(nan, 1), SpecError);
  EXPECT_THROW(clip_grad_norm::coefficient(infinity, 1), SpecError);
  EXPECT_NO_THROW(clip_grad_norm::check_finite(1e300, "gradient 2"));
  try {
    clip_grad_norm::check_finite(infinity, "gradient 2");
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "clip_grad_norm_c2: the sum of squares is inf from gradient 2 on; nothing was clipped");
  }
}

TEST(ClipGradNormSpec, ScalesDownAndNeverUp) {
  EXPECT_DOUBLE_EQ(clip_grad_norm::coefficient(5, 2.5), 2.5 / 5.000001);
  EXPECT_EQ(clip_grad_norm::coefficient(5, 10), 1);
  EXPECT_EQ(clip_grad_norm::coefficient(0, 1e-3), 1);
  EXPECT_LT(clip_grad_norm::coefficient(1, 1), 1);  // the 1e-6 is there at the limit itself
}

TEST(ClipGradNormSpec, CountsBytesOfBothPasses) {
  EXPECT_EQ(clip_grad_norm::norm_bytes(10, 4), Count(40));
  EXPECT_EQ(clip_grad_norm::scale_bytes(10, 4), Count(80));
}

}  // namespace
}  // namespace assay::spec::clip_grad_norm_test
