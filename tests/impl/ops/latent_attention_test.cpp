// labels: parity property
#include "impl/ops/latent_attention/latent_attention.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/latent_attention_parity.hpp"

namespace assay::impl::latent_attention_test {
namespace {

RC_GTEST_PROP(LatentAttentionImpl, ExpandMatchesReference, ()) {
  parity::latent_expand_matches_reference(at::kCPU);
}

RC_GTEST_PROP(LatentAttentionImpl, ExpandBackwardMatchesReference, ()) {
  parity::latent_expand_backward_matches_reference(at::kCPU);
}

TEST(LatentAttentionImpl, SplitAndJoinAreEachOthersInverse) {
  const at::Tensor down = tests::normal({5, 9}, 1, at::kBFloat16);
  const auto parts = latent_attention::split(down, 4);
  EXPECT_TRUE(parts.key_value.is_contiguous() && parts.shared_key.is_contiguous());
  EXPECT_TRUE(tests::same_bits(parts.key_value, down.narrow(1, 0, 5)));
  EXPECT_TRUE(tests::same_bits(parts.shared_key, down.narrow(1, 5, 4)));
  EXPECT_TRUE(tests::same_bits(latent_attention::join(parts.key_value, parts.shared_key), down));
}

TEST(LatentAttentionImpl, SameBitsOnAnyNumberOfThreads) {
  const spec::latent_attention::Shape s{.B = 4, .T = 50, .H = 6, .E = 12, .R = 8, .W = 5};
  const auto table = rope::table(spec::rope::inverse_frequencies(8, 10000, {}), 50, at::kFloat, at::kCPU);
  const at::Tensor dqkv = tests::normal({200, 6 * 29}, 1, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto d = latent_attention::expand_backward(dqkv, s, spec::rope::Pairs::neighbours, table, {});
    return std::vector{d.query, d.key_value, d.shared_key,
                       latent_attention::expand(d.query, d.key_value, d.shared_key, s,
                                                spec::rope::Pairs::halves, table, {})};
  }));
}

TEST(LatentAttentionImpl, ConstraintsAreChecked) {
  const spec::latent_attention::Shape s{.B = 1, .T = 2, .H = 3, .E = 5, .R = 4, .W = 2};
  const auto table = rope::table({1.0, 0.1}, 8, at::kFloat, at::kCPU);
  const auto expand = [&](reference::Shape query, reference::Shape key_value, reference::Shape shared,
                          const at::Tensor& positions) {
    return tests::refusal([&] {
      latent_attention::expand(at::ones(query), at::ones(key_value), at::ones(shared), s,
                               spec::rope::Pairs::halves, table, positions);
    });
  };
  EXPECT_EQ(expand({2, 15}, {2, 9}, {2, 4}, {}), "accepted");
  EXPECT_EQ(expand({2, 14}, {2, 9}, {2, 4}, {}), "latent_attention_c1");
  EXPECT_EQ(expand({2, 15}, {2, 10}, {2, 4}, {}), "latent_attention_c1");
  EXPECT_EQ(expand({2, 15}, {2, 9}, {1, 4}, {}), "latent_attention_c1");
  EXPECT_EQ(expand({2, 15}, {2, 9}, {2, 4}, tests::integers({0, 1, 2}, at::kInt)), "rope_c3");
  EXPECT_EQ(expand({2, 15}, {2, 9}, {2, 4}, tests::integers({0, 8}, at::kInt)), "rope_c6");
  EXPECT_EQ(tests::refusal([&] {
              latent_attention::expand_backward(at::ones({2, 35}), s, spec::rope::Pairs::halves, table, {});
            }),
            "latent_attention_c1");
  EXPECT_EQ(tests::refusal([&] { latent_attention::split(at::ones({2, 4}), 4); }), "latent_attention_c1");
  EXPECT_EQ(tests::refusal([&] {
              latent_attention::join(at::ones({2, 4}), at::ones({3, 4}));
            }),
            "latent_attention_c1");
}

}  // namespace
}  // namespace assay::impl::latent_attention_test
