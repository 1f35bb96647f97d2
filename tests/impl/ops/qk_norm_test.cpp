// labels: parity property
#include "impl/ops/qk_norm/qk_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/qk_norm_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::qk_norm_test {
namespace {

using reference::Index;

constexpr double eps = 1e-6;

RC_GTEST_PROP(QkNormImpl, MatchesReference, ()) { parity::qk_norm_matches_reference(at::kCPU); }

TEST(QkNormImpl, SameBitsOnAnyNumberOfThreads) { parity::qk_norm_is_repeatable(at::kCPU, 12); }

TEST(QkNormImpl, ConstraintsAreChecked) {
  const auto table = rope::table({1, 1, 1}, 2, at::kFloat, at::kCPU);
  const auto of_gains = [&](reference::Shape shape, Index q, Index k, Index heads, Index kv_heads,
                            double epsilon) {
    return tests::refusal([&] {
      qk_norm::forward_rope(at::ones(shape), at::ones({q}), at::ones({k}), heads, kv_heads, epsilon, table,
                            {});
    });
  };
  const auto forward = [&](reference::Shape shape, Index gains, Index heads, Index kv_heads, double epsilon) {
    return of_gains(shape, gains, gains, heads, kv_heads, epsilon);
  };
  EXPECT_EQ(of_gains({1, 2, 4, 6}, 12, 6, 2, 1, eps), "accepted");  // across heads
  EXPECT_EQ(of_gains({1, 2, 4, 6}, 12, 12, 2, 1, eps), "qk_norm_c1");
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, eps), "accepted");
  EXPECT_EQ(forward({1, 2, 4, 6}, 5, 2, 1, eps), "qk_norm_c1");
  EXPECT_EQ(forward({1, 2, 5, 6}, 6, 2, 1, eps), "qk_norm_c2");
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, 0), "qk_norm_c3");
  EXPECT_EQ(forward({1, 2, 4, 0}, 0, 2, 1, eps), "qk_norm_c4");
  EXPECT_EQ(forward({1, 3, 4, 6}, 6, 2, 1, eps), "rope_c6");  // three tokens, a table of two positions
}

}  // namespace
}  // namespace assay::impl::qk_norm_test
