// labels: unit
#include "tests/support/golden_rope.hpp"

#include <gtest/gtest.h>

namespace assay::tests::golden_rope_test {
namespace {

TEST(GoldenRope, ReadsTheScalingThatAFileStates) {
  GoldenFile golden;
  EXPECT_FALSE(rope_scaling(golden));
  golden.scalars = {{"factor", 8}, {"low_freq_factor", 2}, {"high_freq_factor", 3}, {"original_context", 64}};
  EXPECT_EQ(rope_scaling(golden), (spec::RopeScaling{8, 2, 3, 64}));
  golden.scalars = {
      {"factor", 4},   {"beta_fast", 16},       {"beta_slow", 2},         {"original_context", 64},
      {"mscale", 0.5}, {"mscale_all_dim", 0.7}, {"attention_factor", 1.5}};
  EXPECT_EQ(rope_scaling(golden), (spec::RopeScaling{.factor = 4,
                                                     .original_context = 64,
                                                     .kind = spec::RopeScalingKind::yarn,
                                                     .beta_fast = 16,
                                                     .beta_slow = 2,
                                                     .mscale = 0.5,
                                                     .mscale_all_dim = 0.7,
                                                     .attention_factor = 1.5}));
}

}  // namespace
}  // namespace assay::tests::golden_rope_test
