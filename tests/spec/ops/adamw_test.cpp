// labels: unit
#include "spec/ops/adamw/adamw.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spec/error.hpp"

namespace assay::spec::adamw_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const adamw::Settings settings{
    .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.5, .step = 1};

TEST(AdamwSpec, C1RejectsAnotherNumberOfEntries) {
  EXPECT_NO_THROW(adamw::check_entries("gradient", 3, 3));
  try {
    adamw::check_entries("moment1", 4, 3);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "adamw_c1: moment1 has 4 entries, the parameter 3");
  }
}

TEST(AdamwSpec, C2RejectsStepZero) {
  adamw::Settings changed = settings;
  EXPECT_NO_THROW(adamw::check(changed));
  changed.step = 0;
  EXPECT_THROW(adamw::check(changed), SpecError);
}

TEST(AdamwSpec, C3RejectsBetasOutsideTheirRange) {
  for (double beta : {-0.1, 1.0, nan}) {
    adamw::Settings first = settings, second = settings;
    first.beta1 = beta;
    second.beta2 = beta;
    EXPECT_THROW(adamw::check(first), SpecError) << beta;
    EXPECT_THROW(adamw::check(second), SpecError) << beta;
  }
}

TEST(AdamwSpec, C4RejectsAnEpsThatIsNotPositive) {
  for (double eps : {0.0, -1e-8, nan, infinity}) {
    adamw::Settings changed = settings;
    changed.eps = eps;
    EXPECT_THROW(adamw::check(changed), SpecError) << eps;
  }
}

TEST(AdamwSpec, C5RejectsANegativeLearningRate) {
  for (double learning_rate : {-0.1, nan, infinity}) {
    adamw::Settings changed = settings;
    changed.learning_rate = learning_rate;
    EXPECT_THROW(adamw::check(changed), SpecError) << learning_rate;
  }
}

TEST(AdamwSpec, C6RejectsANegativeWeightDecay) {
  for (double weight_decay : {-0.1, nan, infinity}) {
    adamw::Settings changed = settings;
    changed.weight_decay = weight_decay;
    EXPECT_THROW(adamw::check(changed), SpecError) << weight_decay;
  }
}

TEST(AdamwSpec, CorrectsTheFirstStepFullyAndALateOneNotAtAll) {
  const auto first = adamw::scalars(settings);
  EXPECT_DOUBLE_EQ(first.kept, 0.95);
  EXPECT_DOUBLE_EQ(first.step_size, 1.0);  // 0.1 / (1 - 0.9)
  EXPECT_DOUBLE_EQ(first.root_correction2, 0.1);
  adamw::Settings late = settings;
  late.step = 100000;
  EXPECT_EQ(adamw::scalars(late).step_size, settings.learning_rate);
  EXPECT_EQ(adamw::scalars(late).root_correction2, 1);
}

TEST(AdamwSpec, CountsBytesOfEveryTensor) {
  // fp32 parameter and moments read and written, bf16 gradient read, bf16 working copy written: 24 + 2 + 2.
  EXPECT_EQ(adamw::update_bytes(10, 4, 2, 2), Count(280));
  EXPECT_EQ(adamw::update_bytes(10, 8, 8, 0), Count(560));
}

}  // namespace
}  // namespace assay::spec::adamw_test
