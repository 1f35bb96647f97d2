// labels: unit
#include "spec/ops/bias/bias.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::spec::bias_test {
namespace {

TEST(BiasSpec, C1RejectsABiasOfAnotherSize) {
  EXPECT_NO_THROW(bias::check({.N = 2, .out = 3}, 3));
  try {
    bias::check({.N = 2, .out = 3}, 4);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "bias_c1: bias has 4 entries, rows have out=3");
  }
}

TEST(BiasSpec, C2RejectsEmptyRows) {
  EXPECT_THROW(bias::check({.N = 2, .out = 0}, 0), SpecError);
  EXPECT_THROW(bias::check({.N = -1, .out = 3}, 3), SpecError);
  EXPECT_NO_THROW(bias::check({.N = 0, .out = 3}, 3));
}

TEST(BiasSpec, CountsWhatTheGemmDoesNot) {
  EXPECT_EQ(bias::forward_flops({.N = 2, .out = 3}), (Flops{0, 6}));
  EXPECT_EQ(bias::backward_flops({.N = 2, .out = 3}), (Flops{0, 6}));
  EXPECT_EQ(bias::forward_bytes({.N = 2, .out = 3}, 2), Count(6));       // b
  EXPECT_EQ(bias::backward_bytes({.N = 2, .out = 3}, 2, 4), Count(36));  // dy 6 in bf16, db read and written
}

TEST(BiasSpec, PartialSumsGoByTheRowsAlone) {
  EXPECT_EQ(bias::partial_rows(0), 1);
  EXPECT_EQ(bias::partial_rows(100), 100);
  EXPECT_EQ(bias::partial_rows(1 << 20), 264);
}

}  // namespace
}  // namespace assay::spec::bias_test
