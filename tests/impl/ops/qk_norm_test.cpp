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

RC_GTEST_PROP(QkNormImpl, MatchesReferenceOnEveryHead, ()) { parity::qk_norm_matches_reference(at::kCPU); }

TEST(QkNormImpl, SameBitsOnAnyNumberOfThreads) {
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({2, 300, 8, 12}, 1, type),
                     gain = tests::normal({12}, 2, tests::math_of(type));
    EXPECT_TRUE(tests::repeatable([&] { return parity::qk_norm_of(qkv, gain, 4, 2); })) << type;
  }
}

TEST(QkNormImpl, ConstraintsAreChecked) {
  const auto table = rope::table({1, 1, 1}, 2, at::kFloat, at::kCPU);
  const auto forward = [&](reference::Shape shape, Index gains, Index heads, Index kv_heads, double epsilon) {
    return tests::refusal([&] {
      qk_norm::forward_rope(at::ones(shape), at::ones({gains}), at::ones({gains}), heads, kv_heads, epsilon,
                            table, {});
    });
  };
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, eps), "accepted");
  EXPECT_EQ(forward({1, 2, 4, 6}, 5, 2, 1, eps), "qk_norm_c1");
  EXPECT_EQ(forward({1, 2, 5, 6}, 6, 2, 1, eps), "qk_norm_c2");
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, 0), "qk_norm_c3");
  EXPECT_EQ(forward({1, 2, 4, 0}, 0, 2, 1, eps), "qk_norm_c4");
  EXPECT_EQ(forward({1, 3, 4, 6}, 6, 2, 1, eps), "rope_c6");  // three tokens, a table of two positions
}

}  // namespace
}  // namespace assay::impl::qk_norm_test
