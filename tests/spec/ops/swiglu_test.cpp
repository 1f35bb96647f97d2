// labels: unit
#include "spec/ops/swiglu/swiglu.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::spec::swiglu_test {
namespace {

TEST(SwigluSpec, C1RejectsAnotherShape) {
  EXPECT_NO_THROW(swiglu::check({.N = 2, .F = 3}, {.N = 2, .F = 3}));
  try {
    swiglu::check({.N = 2, .F = 3}, {.N = 3, .F = 2});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "swiglu_c1: gate is [N=2, F=3], the other is [N=3, F=2]");
  }
}

TEST(SwigluSpec, C2RejectsEmptyRows) {
  EXPECT_THROW(swiglu::check({.N = 2, .F = 0}, {.N = 2, .F = 0}), SpecError);
  EXPECT_THROW(swiglu::check({.N = -1, .F = 3}, {.N = -1, .F = 3}), SpecError);
  EXPECT_NO_THROW(swiglu::check({.N = 0, .F = 3}, {.N = 0, .F = 3}));
}

TEST(SwigluSpec, CountsBytesOfEveryTensorOnce) {
  EXPECT_EQ(swiglu::forward_bytes({.N = 2, .F = 3}, 2), Count(36));   // gate, up, y
  EXPECT_EQ(swiglu::backward_bytes({.N = 2, .F = 3}, 2), Count(60));  // dy, gate, up, dgate, dup
}

/// 6 entries of 2 rows: a product more in forward; in backward w dy, dy v and its sum, and w v where written.
TEST(SwigluSpec, CountsWhatWeightsOfRowsAdd) {
  using enum swiglu::WeightedValue;
  const swiglu::Shape shape{.N = 2, .F = 3};
  const auto silu = swiglu::Activation::silu, gelu = swiglu::Activation::gelu_tanh;
  EXPECT_EQ(swiglu::weighted_forward_flops(shape, silu).vector, Count(30 + 6));
  EXPECT_EQ(swiglu::weighted_forward_flops(shape, gelu).vector, Count(60 + 6));
  EXPECT_EQ(swiglu::weighted_backward_flops(shape, silu, kept).vector, Count(66 + 18));
  EXPECT_EQ(swiglu::weighted_backward_flops(shape, silu, written).vector, Count(66 + 24));
  EXPECT_EQ(swiglu::weighted_backward_flops(shape, gelu, written).vector, Count(126 + 24));
  // Weights of 4 bytes, slots of 8: gate, up, y; weights and slots.
  EXPECT_EQ(swiglu::weighted_forward_bytes(shape, 2, 4, 8), Count(36 + 2 * 12));
  // dy, gate, up, dgate, dup; weights, dw and slots; and the value.
  EXPECT_EQ(swiglu::weighted_backward_bytes(shape, kept, 2, 4, 8), Count(60 + 2 * 16));
  EXPECT_EQ(swiglu::weighted_backward_bytes(shape, written, 2, 4, 8), Count(60 + 2 * 16 + 12));
}

}  // namespace
}  // namespace assay::spec::swiglu_test
