// labels: parity property
#include "impl/ops/rope/rope.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/ops/rope/rope.hpp"
#include "tests/impl/ops/parity/rope_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::rope_test {
namespace {

RC_GTEST_PROP(RopeImpl, MatchesReference, ()) { parity::rope_matches_reference(at::kCPU); }

RC_GTEST_PROP(RopeImpl, JoinedBackwardMatchesReference, ()) {
  parity::rope_joined_backward_matches_reference(at::kCPU);
}

TEST(RopeImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor x = tests::normal({4, 100, 6, 16}, 1, at::kFloat);
  const auto table = rope::table(spec::rope::inverse_frequencies(16, 10000, {}), 100, at::kFloat, at::kCPU);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor y = x.clone();
    rope::rotate(y, 4, table, {}, false);
    return std::vector{y};
  }));
}

TEST(RopeImpl, ConstraintsAreChecked) {
  const auto table = rope::table({1.0, 0.1}, 8, at::kFloat, at::kCPU);
  const auto rotate = [&](reference::Shape shape, const at::Tensor& positions) {
    return tests::refusal([&] { rope::rotate(at::ones(shape), 1, table, positions, false); });
  };
  EXPECT_EQ(rotate({1, 2, 1, 4}, {}), "accepted");
  EXPECT_EQ(rotate({1, 2, 1, 3}, {}), "rope_c1");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, 1, 2}, at::kInt)), "rope_c3");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, -1}, at::kInt)), "rope_c3");
  EXPECT_EQ(rotate({1, 2, 1, 6}, {}), "rope_c5");
  EXPECT_EQ(rotate({1, 9, 1, 4}, {}), "rope_c6");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, 8}, at::kInt)), "rope_c6");
}

}  // namespace
}  // namespace assay::impl::rope_test
