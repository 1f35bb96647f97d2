// labels: unit
#include "spec/ops/qk_norm/qk_norm.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "spec/error.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"

namespace assay::spec::qk_norm_test {
namespace {

const qk_norm::Shape shape{.B = 2, .T = 3, .H = 4, .K = 2, .E = 8};

TEST(QkNormSpec, C1RejectsAGainOfAnotherSize) {
  EXPECT_NO_THROW(qk_norm::check(shape, 8, 8, 1e-6));
  EXPECT_THROW(qk_norm::check(shape, 4, 8, 1e-6), SpecError);
  EXPECT_THROW(qk_norm::check(shape, 8, 32, 1e-6), SpecError);
  EXPECT_THROW(qk_norm::check(shape, 32, 8, 1e-6), SpecError);
  EXPECT_THROW(qk_norm::check(shape, 16, 32, 1e-6), SpecError);
}

TEST(QkNormSpec, TheGainsSayWhatIsNormalisedTogether) {
  EXPECT_FALSE(qk_norm::check(shape, 8, 8, 1e-6).across_heads);
  const qk_norm::Shape across = qk_norm::check(shape, 4 * 8, 2 * 8, 1e-6);
  EXPECT_TRUE(across.across_heads);
  EXPECT_EQ(shape.statistics(), 4 + 2);
  EXPECT_EQ(across.statistics(), 2);
  // One query head: only the keys' gain tells.
  const qk_norm::Shape one_query{.B = 1, .T = 1, .H = 1, .K = 2, .E = 8};
  EXPECT_FALSE(qk_norm::check(one_query, 8, 8, 1e-6).across_heads);
  EXPECT_TRUE(qk_norm::check(one_query, 8, 16, 1e-6).across_heads);
}

TEST(QkNormSpec, C2RejectsQueriesAndKeysOfDifferentTokens) {
  EXPECT_EQ(qk_norm::shape_of({2, 3, 4, 8}, {2, 3, 2, 8}).K, 2);
  EXPECT_THROW(qk_norm::shape_of({2, 3, 4, 8}, {2, 3, 2, 4}), SpecError);
  EXPECT_THROW(qk_norm::shape_of({2, 3, 32}, {2, 3, 16}), SpecError);
  try {
    qk_norm::shape_of({2, 3, 4, 8}, {2, 1, 2, 8});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "qk_norm_c2: q is [2, 3, 4, 8], k is [2, 1, 2, 8]");
  }
}

TEST(QkNormSpec, C3RejectsAnEpsThatIsNotPositive) {
  for (double eps :
       {0.0, -1e-5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(qk_norm::check(shape, 8, 8, eps), SpecError) << eps;
}

TEST(QkNormSpec, C4RejectsEmptyHeads) {
  EXPECT_THROW(qk_norm::check({.B = 2, .T = 3, .H = 4, .K = 2, .E = 0}, 0, 0, 1e-6), SpecError);
  EXPECT_THROW(qk_norm::check({.B = 2, .T = 3, .H = 4, .K = 0, .E = 8}, 8, 8, 1e-6), SpecError);
  EXPECT_NO_THROW(qk_norm::check({.B = 0, .T = 3, .H = 4, .K = 2, .E = 8}, 8, 8, 1e-6));
}

TEST(QkNormSpec, CostsWhatRmsNormCosts) {
  // 2*3*(4 + 2) = 36 heads of 8: 36*(4*8 + 4) and 36*(11*8 + 1).
  EXPECT_EQ(qk_norm::forward_flops(shape), (Flops{0, 1296}));
  EXPECT_EQ(qk_norm::backward_flops(shape), (Flops{0, 3204}));
  // 36 heads in and out and two gains in bf16, 36 rstd in fp32.
  EXPECT_EQ(qk_norm::forward_bytes(shape, 2, 4), Count(2 * 36 * 8 * 2 + (36 + 16) * 4));
  EXPECT_EQ(qk_norm::backward_bytes(shape, 2, 4), Count(3 * 36 * 8 * 2 + (36 + 2 * 16) * 4));
  // With rope: 2*3*8 cosines and sines, and in forward 2*3*2 value heads in and out.
  EXPECT_EQ(qk_norm::forward_rope_bytes(shape, 2, 4), Count(2 * (36 + 12) * 8 * 2 + (36 + 16) * 4 + 48 * 4));
  EXPECT_EQ(qk_norm::backward_rope_bytes(shape, 2, 4), Count(3 * 36 * 8 * 2 + (36 + 2 * 16) * 4 + 48 * 4));
}

TEST(QkNormSpec, CostsAcrossHeadsWhatRmsNormOfLongerRowsCosts) {
  // 2*3 = 6 rows of 4*8 = 32 query entries and 6 of 2*8 = 16 key entries.
  const qk_norm::Shape across = qk_norm::check(shape, 32, 16, 1e-6);
  EXPECT_EQ(qk_norm::forward_flops(across), (Flops{0, 6 * (4 * 32 + 4) + 6 * (4 * 16 + 4)}));
  EXPECT_EQ(qk_norm::backward_flops(across), (Flops{0, 6 * (11 * 32 + 1) + 6 * (11 * 16 + 1)}));
  // The same heads, gains of 48 entries, 2 rstd of each token.
  EXPECT_EQ(qk_norm::forward_bytes(across, 2, 4), Count(2 * 36 * 8 * 2 + (12 + 48) * 4));
  EXPECT_EQ(qk_norm::backward_bytes(across, 2, 4), Count(3 * 36 * 8 * 2 + (12 + 2 * 48) * 4));
  EXPECT_EQ(qk_norm::forward_rope_bytes(across, 2, 4), Count(2 * (36 + 12) * 8 * 2 + (12 + 48) * 4 + 48 * 4));
}

}  // namespace
}  // namespace assay::spec::qk_norm_test
