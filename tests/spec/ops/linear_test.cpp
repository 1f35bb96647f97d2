// labels: unit
#include "spec/ops/linear/linear.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::spec::linear_test {
namespace {

TEST(LinearSpec, C1RejectsAWeightForRowsOfAnotherSize) {
  EXPECT_NO_THROW(linear::check({.N = 2, .in = 4, .out = 3}, 4));
  try {
    linear::check({.N = 2, .in = 4, .out = 3}, 5);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "linear_c1: weight takes rows of 5, x has in=4");
  }
}

TEST(LinearSpec, C2RejectsEmptyRows) {
  EXPECT_THROW(linear::check({.N = 2, .in = 0, .out = 3}, 0), SpecError);
  EXPECT_THROW(linear::check({.N = 2, .in = 4, .out = 0}, 4), SpecError);
  EXPECT_THROW(linear::check({.N = -1, .in = 4, .out = 3}, 4), SpecError);
  EXPECT_NO_THROW(linear::check({.N = 0, .in = 4, .out = 3}, 4));
}

TEST(LinearSpec, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_NO_THROW(linear::check_upstream({.N = 2, .in = 4, .out = 3}, 6));
  EXPECT_THROW(linear::check_upstream({.N = 2, .in = 4, .out = 3}, 8), SpecError);
}

TEST(LinearSpec, BackwardIsTwiceForward) {
  const linear::Shape shape{.N = 4096, .in = 4096, .out = 14336};
  EXPECT_EQ(linear::forward_flops(shape), (Flops{481036337152, 0}));
  EXPECT_EQ(linear::backward_flops(shape), linear::forward_flops(shape) + linear::forward_flops(shape));
}

TEST(LinearSpec, CountsBytesOfEveryTensorOnce) {
  // x 2*4, weight 3*4, y 2*3 in bf16.
  EXPECT_EQ(linear::forward_bytes({.N = 2, .in = 4, .out = 3}, 2), Count(52));
  // dy 6, x 8, weight 12, dx 8 in bf16; dweight 12 in fp32.
  EXPECT_EQ(linear::backward_bytes({.N = 2, .in = 4, .out = 3}, 2, 4), Count(116));
}

}  // namespace
}  // namespace assay::spec::linear_test
