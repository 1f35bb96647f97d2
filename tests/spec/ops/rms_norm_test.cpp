// labels: unit
#include "spec/ops/rms_norm/rms_norm.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "spec/error.hpp"

namespace assay::spec::rms_norm_test {
namespace {

TEST(RmsNormSpec, C1RejectsAGainOfAnotherSize) {
  EXPECT_NO_THROW(rms_norm::check({.N = 2, .D = 16}, 16, 1e-5));
  try {
    rms_norm::check({.N = 2, .D = 16}, 8, 1e-5);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "rms_norm_c1");
    EXPECT_STREQ(error.what(), "rms_norm_c1: gain has 8 entries, x has D=16");
  }
}

TEST(RmsNormSpec, C2RejectsAnEpsThatIsNotPositive) {
  for (double eps :
       {0.0, -1e-5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(rms_norm::check({.N = 2, .D = 16}, 16, eps), SpecError) << eps;
}

TEST(RmsNormSpec, C3RejectsEmptyRows) {
  EXPECT_THROW(rms_norm::check({.N = 2, .D = 0}, 0, 1e-5), SpecError);
  EXPECT_NO_THROW(rms_norm::check({.N = 0, .D = 4}, 4, 1e-5));
}

TEST(RmsNormSpec, CountsBytesOfEveryTensorOnce) {
  // bf16 x, y and gain, fp32 rstd: (2*3*8 + 8) * 2 + 3 * 4.
  EXPECT_EQ(rms_norm::forward_bytes({.N = 3, .D = 8}, 2, 4), Count(140));
  EXPECT_EQ(rms_norm::sum_bytes({.N = 3, .D = 8}, 2), Count(96));  // the residual read, the sum written
  EXPECT_EQ(rms_norm::sum_flops({.N = 3, .D = 8}).vector, Count(24));
  // dy, x, dx, gain in bf16; rstd and the gain's gradient in fp32: (3*3*8 + 8) * 2 + (3 + 8) * 4.
  EXPECT_EQ(rms_norm::backward_bytes({.N = 3, .D = 8}, 2, 4), Count(220));
}

}  // namespace
}  // namespace assay::spec::rms_norm_test
