// labels: unit property
#include "spec/ops/rope/rope.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "spec/error.hpp"

namespace assay::spec::rope_test {
namespace {

using Ids = std::vector<std::int64_t>;

const rope::Shape shape{.B = 1, .T = 2, .H = 3, .E = 4};
const RopeScaling yarn{.factor = 4, .original_context = 4096, .kind = RopeScalingKind::yarn};
const RopeScaling llama31{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192};

TEST(RopeSpec, C1RejectsHeadsThatHaveNoPairs) {
  EXPECT_THROW(rope::inverse_frequencies(5, 1e4, {}), SpecError);
  EXPECT_THROW(rope::inverse_frequencies(0, 1e4, {}), SpecError);
  EXPECT_THROW(rope::check({.B = 1, .T = 2, .H = 3, .E = 3}, Ids{0, 1}, 1), SpecError);
  EXPECT_THROW(rope::check({.B = 1, .T = 2, .H = -1, .E = 4}, Ids{0, 1}, 2), SpecError);
}

TEST(RopeSpec, C2RejectsAThetaThatIsNotPositive) {
  for (double theta :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(rope::inverse_frequencies(4, theta, {}), SpecError) << theta;
}

TEST(RopeSpec, C3RejectsAnotherNumberOfPositionsAndNegativeOnes) {
  EXPECT_NO_THROW(rope::check(shape, Ids{0, 1}, 2));
  EXPECT_THROW(rope::check(shape, Ids{0}, 2), SpecError);
  try {
    rope::check(shape, Ids{0, -1}, 2);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "rope_c3: position -1 at 1");
  }
}

TEST(RopeSpec, C4RejectsAScalingOutsideItsDomain) {
  EXPECT_NO_THROW(rope::inverse_frequencies(4, 1e4, llama31));
  RopeScaling growing = llama31, crossed = llama31, flat = llama31, empty = llama31;
  growing.factor = 0.5;
  crossed.high_freq_factor = 1;
  flat.low_freq_factor = 0;
  empty.original_context = 0;
  for (const RopeScaling& scaling : {growing, crossed, flat, empty})
    EXPECT_THROW(rope::inverse_frequencies(4, 1e4, scaling), SpecError);
  EXPECT_NO_THROW(rope::inverse_frequencies(4, 1e4, yarn));
  EXPECT_THROW(rope::inverse_frequencies(4, 1, yarn), SpecError);  // no pair is slower than another
  RopeScaling slow = yarn, crossing = yarn;
  slow.beta_slow = 0;
  crossing.beta_fast = 0.5;
  for (const RopeScaling& scaling : {slow, crossing})
    EXPECT_THROW(rope::inverse_frequencies(4, 1e4, scaling), SpecError);
}

TEST(RopeSpec, C5RejectsAnotherNumberOfFrequencies) {
  EXPECT_THROW(rope::check(shape, Ids{0, 1}, 4), SpecError);
}

TEST(RopeSpec, FrequenciesArePowersOfTheta) {
  // 16^(-2e/4): 1 and 1/4, both exact powers of two.
  EXPECT_EQ(rope::inverse_frequencies(4, 16, {}), (std::vector<double>{1, 0.25}));
}

TEST(RopeSpec, ScalingGivesTheSpecExample) {
  const auto only = [](std::int64_t context) {
    return rope::inverse_frequencies(
        2, 1e4,
        RopeScaling{
            .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = context})[0];
  };
  const double kept = (8 / (2 * std::numbers::pi) - 1) / 3;
  EXPECT_DOUBLE_EQ(only(8), kept + (1 - kept) / 8);
  EXPECT_NEAR(only(8), 0.2047, 5e-5);
  EXPECT_EQ(only(6), 0.125);
  EXPECT_EQ(only(26), 1);
}

RC_GTEST_PROP(RopeSpec, ScalingOnlySlowsAndByAtMostItsFactor, ()) {
  const std::int64_t E = 2 * *rc::gen::inRange(1, 65);
  const double theta = *rc::gen::element(1e4, 5e5, 1e6);
  RopeScaling scaling = llama31;
  scaling.factor = *rc::gen::element(1.0, 4.0, 8.0, 32.0);
  scaling.original_context = *rc::gen::inRange(1, 100000);
  const auto plain = rope::inverse_frequencies(E, theta, {}),
             scaled = rope::inverse_frequencies(E, theta, scaling);
  RC_ASSERT(scaled.size() == static_cast<std::size_t>(E / 2));
  const double rounding = 1 + 8 * std::numeric_limits<double>::epsilon();
  for (std::size_t e = 0; e < scaled.size(); ++e) {
    RC_ASSERT(scaled[e] <= plain[e] * rounding && scaled[e] * scaling.factor * rounding >= plain[e]);
    RC_ASSERT((e == 0 || scaled[e] < scaled[e - 1]));  // faster pairs stay faster
  }
}

TEST(RopeSpec, YarnGivesTheSpecExample) {
  const auto frequencies = rope::inverse_frequencies(8, 1e4, yarn);
  const double expected[] = {1, 0.1, 0.00625, 0.00025};
  for (std::size_t e = 0; e < 4; ++e) EXPECT_DOUBLE_EQ(frequencies[e], expected[e]) << e;
  EXPECT_DOUBLE_EQ(rope::attention_factor(yarn), 1 + 0.1 * std::log(4));
}

TEST(RopeSpec, YarnSlowsEveryPairBehindARangeOfNone) {
  // An original context of 4 tokens, in which no pair makes a whole turn: first = last = 0.
  const auto plain = rope::inverse_frequencies(8, 1e4, {});
  RopeScaling scaling = yarn;
  scaling.original_context = 4;
  const auto scaled = rope::inverse_frequencies(8, 1e4, scaling);
  EXPECT_EQ(scaled[0], plain[0]);
  for (std::size_t e = 1; e < 4; ++e) EXPECT_EQ(scaled[e], plain[e] / 4) << e;
}

TEST(RopeSpec, C4RejectsAYarnWhoseRangeMissesThePairs) {
  // 10^6 tokens under theta 10: even the slowest pair turns more than beta_fast times. Two tokens: the range
  // of 64 entries ends four pairs before the first one.
  RopeScaling scaling = yarn;
  scaling.original_context = 1000000;
  EXPECT_THROW(rope::inverse_frequencies(8, 10, scaling), SpecError);
  scaling.original_context = 2;
  EXPECT_NO_THROW(rope::inverse_frequencies(8, 1e4, scaling));
  EXPECT_THROW(rope::inverse_frequencies(64, 1e4, scaling), SpecError);
}

TEST(RopeSpec, TheAttentionFactorFollowsFromWhatYarnStates) {
  RopeScaling scaling = yarn;
  const double grown = 0.1 * std::log(4);
  scaling.mscale = 0.5;  // alone it is not read, as in transformers
  EXPECT_DOUBLE_EQ(rope::attention_factor(scaling), 1 + grown);
  scaling.mscale_all_dim = 0.7;
  EXPECT_DOUBLE_EQ(rope::attention_factor(scaling), (1 + 0.5 * grown) / (1 + 0.7 * grown));
  scaling.mscale = 0;
  EXPECT_DOUBLE_EQ(rope::attention_factor(scaling), 1 + grown);
  scaling.attention_factor = 1.25;
  EXPECT_EQ(rope::attention_factor(scaling), 1.25);
  scaling.kind = RopeScalingKind::llama3;
  EXPECT_EQ(rope::attention_factor(scaling), 1);
  EXPECT_EQ(rope::attention_factor({}), 1);
}

TEST(RopeSpec, AModelSaysWhatItTurnsAndHow) {
  ModelSpec model = find_model("tiny-llama");
  EXPECT_EQ(rope::inverse_frequencies(model).size(), 16u);
  EXPECT_EQ(rope::form_of(model).pairs, rope::Pairs::halves);
  EXPECT_EQ(rope::form_of(model).factor, 1);
  model = find_model("deepseek-v3");
  EXPECT_EQ(rope::inverse_frequencies(model), rope::inverse_frequencies(64, 1e4, model.rope_scaling));
  EXPECT_EQ(rope::form_of(model).pairs, rope::Pairs::neighbours);
  EXPECT_EQ(rope::form_of(model).factor, 1);  // both mscales are 1
  model.latent->interleaved = false;
  model.rope_scaling->attention_factor = 2;
  EXPECT_EQ(rope::form_of(model).pairs, rope::Pairs::halves);
  EXPECT_EQ(rope::form_of(model).factor, 2);
}

TEST(RopeSpec, CountsBytesOfEveryTensorOnce) {
  // x and y, 24 entries each in bf16; 8 cosines and sines in fp32.
  EXPECT_EQ(rope::forward_bytes(shape, 2, 4), Count(128));
  EXPECT_EQ(rope::backward_bytes(shape, 2, 4), Count(128));
}

}  // namespace
}  // namespace assay::spec::rope_test
