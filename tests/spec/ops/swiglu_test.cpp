// labels: unit
#include "spec/ops/swiglu.hpp"

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

}  // namespace
}  // namespace assay::spec::swiglu_test
