// labels: unit
#include "spec/ops/cross_entropy/cross_entropy.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec::cross_entropy_test {
namespace {

using Ids = std::vector<std::int64_t>;

const cross_entropy::Shape shape{.N = 2, .V = 5};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(CrossEntropySpec, C1RejectsAnotherNumberOfTargets) {
  EXPECT_NO_THROW(cross_entropy::check(shape, Ids{0, 4}, 2, 0));
  EXPECT_THROW(cross_entropy::check(shape, Ids{0}, 2, 0), SpecError);
}

TEST(CrossEntropySpec, C2RejectsATargetOutsideTheVocabulary) {
  EXPECT_NO_THROW(cross_entropy::check(shape, Ids{-100, 4}, 2, 0));
  EXPECT_THROW(cross_entropy::check(shape, Ids{0, -1}, 2, 0), SpecError);
  try {
    cross_entropy::check(shape, Ids{0, 5}, 2, 0);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "cross_entropy_c2: target 5 at 1 is neither in [0, V=5) nor -100");
  }
}

TEST(CrossEntropySpec, C3RejectsANormalizerThatIsNotPositive) {
  for (double normalizer : {0.0, -1.0, nan, infinity})
    EXPECT_THROW(cross_entropy::check(shape, Ids{0, 4}, normalizer, 0), SpecError) << normalizer;
}

TEST(CrossEntropySpec, C4RejectsANegativeZLoss) {
  for (double z_loss : {-1e-4, nan, infinity})
    EXPECT_THROW(cross_entropy::check(shape, Ids{0, 4}, 2, z_loss), SpecError) << z_loss;
}

TEST(CrossEntropySpec, C5RejectsAnEmptyVocabulary) {
  EXPECT_THROW(cross_entropy::check({.N = 0, .V = 0}, Ids{}, 2, 0), SpecError);
  EXPECT_THROW(cross_entropy::check({.N = -1, .V = 5}, Ids{}, 2, 0), SpecError);
  EXPECT_NO_THROW(cross_entropy::check({.N = 0, .V = 5}, Ids{}, 2, 0));
}

TEST(CrossEntropySpec, ASliceMayBeEmptyAndItsTargetsForeign) {
  const auto check = [](std::int64_t V, Ids targets) {
    cross_entropy::check({.N = 2, .V = V}, targets, 2, 0, Vocabulary::slice);
  };
  EXPECT_NO_THROW(check(5, {foreign, 4}));
  EXPECT_NO_THROW(check(0, {foreign, -100}));
  EXPECT_THROW(check(-1, {foreign, -100}), SpecError);
  EXPECT_THROW(check(0, {foreign, 0}), SpecError);
  try {
    check(5, {0, -2});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "cross_entropy_c2: target -2 at 1 is neither in [0, V=5) nor -100 nor foreign (-1)");
  }
}

TEST(CrossEntropySpec, OneSliceTakesTheFlopsOfForwardAndTheRescaling) {
  EXPECT_EQ(cross_entropy::partial_flops(shape).vector + cross_entropy::combine_flops(2, 1).vector,
            cross_entropy::forward_flops(shape, 1).vector);
  EXPECT_EQ(cross_entropy::rescale_flops(2).vector, Count(6));
}

TEST(CrossEntropySpec, CountsValidTargets) {
  EXPECT_EQ(cross_entropy::count_valid(Ids{}), 0);
  EXPECT_EQ(cross_entropy::count_valid(Ids{-100, 0, 4, -100, 2}), 3);
}

TEST(CrossEntropySpec, CountsBytesOfEveryTensorOnce) {
  // 10 logits in bf16, 2 targets of 8 bytes, 2 lse in fp32; backward also writes 10 dlogits in bf16.
  EXPECT_EQ(cross_entropy::forward_bytes(shape, 2, 8, 4), Count(44));
  EXPECT_EQ(cross_entropy::backward_bytes(shape, 2, 8, 4), Count(64));
  // Of a slice: 10 logits, 2 targets, three statistics of 2 rows; then four of them; then those and 2
  // targets.
  EXPECT_EQ(cross_entropy::partial_bytes(shape, 2, 8, 4), Count(60));
  EXPECT_EQ(cross_entropy::rescale_bytes(2, 4), Count(32));
  EXPECT_EQ(cross_entropy::combine_bytes(2, 8, 4), Count(48));
}

}  // namespace
}  // namespace assay::spec::cross_entropy_test
