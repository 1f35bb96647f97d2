// labels: parity property gpu
// Latent attention on the GPU: `expand` against the reference, and softmax attention of DeepSeek-V3's heads,
// 192 entries of queries and keys and 128 of values.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <iostream>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "tests/impl/ops/parity/attention_parity.hpp"
#include "tests/impl/ops/parity/latent_attention_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::latent_attention_cuda_test {
namespace {

constexpr attention::Form deepseek{.value_dim = 128, .score_factor = 1.87};

TEST(LatentAttentionCuda, ExpandMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::latent_expand_matches_reference(at::kCUDA); }));
}

TEST(LatentAttentionCuda, ExpandBackwardMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::latent_expand_backward_matches_reference(at::kCUDA); }));
}

TEST(LatentAttentionCuda, RepeatedCallsGiveTheSameBits) {
  ASSAY_NEEDS_GPU();
  const spec::latent_attention::Shape s{.B = 2, .T = 100, .H = 128, .E = 192, .R = 64, .W = 128};
  const auto table =
      rope::table(spec::rope::inverse_frequencies(64, 10000, {}), 100, at::kBFloat16, at::kCUDA);
  const at::Tensor dqkv = tests::normal({200, 128 * 512}, 1, at::kBFloat16).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto d = latent_attention::expand_backward(dqkv, s, spec::rope::Pairs::neighbours, table, {});
    return std::vector{d.query, d.key_value, d.shared_key,
                       latent_attention::expand(d.query, d.key_value, d.shared_key, s,
                                                spec::rope::Pairs::neighbours, table, {})};
  }));
}

/// Against plain products on the same numbers in fp64, as attention_test.cpp of other heads: bounds of six
/// roundings to bf16 an entry. What chose the backend is printed.
TEST(LatentAttentionCuda, HeadsOf192And128MatchPlainProducts) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  for (const bool fixed_order : {false, true})
    for (const int T : {512, 250}) {
      constexpr int H = 16;
      const at::Tensor qkv = tests::normal({2, T, H * 512}, 1, at::kBFloat16).to(at::kCUDA),
                       dy = tests::normal({2, T, H, 128}, 2, at::kBFloat16).to(at::kCUDA);
      set_deterministic(fixed_order);
      const auto out = attention::forward(qkv, H, H, {}, deepseek);
      const metrics::FlopCounter counter;
      const at::Tensor dqkv = attention::backward(dy, qkv, out, H, H, {}, deepseek);
      set_deterministic(false);
      for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
      const bool hopper = at::cuda::getCurrentDeviceProperties()->major == 9;
      EXPECT_TRUE(!hopper || out.backend == attention::Backend::cudnn) << T << " " << fixed_order;
      if (out.backend == attention::Backend::cudnn) {
        const Count product = Count(2 * 2 * H) * (T * (T + 1) / 2);
        const auto ran = [&](spec::FlopComponent component, spec::ExecutedPass pass) {
          return counter.measured().at(component, pass);
        };
        EXPECT_EQ(ran(spec::FlopComponent::attention_scores, spec::ExecutedPass::backward),
                  2 * 192 * product);
        EXPECT_EQ(ran(spec::FlopComponent::attention_values, spec::ExecutedPass::backward),
                  2 * 128 * product);
        EXPECT_EQ(ran(spec::FlopComponent::attention_scores, spec::ExecutedPass::recompute), 192 * product);
      }
      const at::Tensor wide = qkv.to(at::kDouble);
      const auto plain = attention::aten::forward({wide, H, H, deepseek}, {});
      const at::Tensor plain_dqkv =
          attention::aten::backward(dy.to(at::kDouble), {wide, H, H, deepseek}, plain, {}).joined;
      EXPECT_LE(parity::share_of_largest(out.y, plain.y), 6 * unit_roundoff(Dtype::bf16));
      EXPECT_LE(parity::relative_norm(dqkv, plain_dqkv), parity::gradient_norm_bound)
          << T << " " << fixed_order;
      EXPECT_LE(parity::share_of_largest(dqkv, plain_dqkv),
                6 * unit_roundoff(Dtype::bf16) * std::sqrt(static_cast<double>(T)))
          << T << " " << fixed_order;
    }
}

/// A window and a type other than bf16 are beyond every fused backend of these heads: plain products compute
/// them, and each backend says why it does not.
TEST(LatentAttentionCuda, WhatNoFusedBackendTakesIsComputedByPlainProducts) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  const at::Tensor qkv = tests::normal({1, 64, 2 * 512}, 3, at::kBFloat16).to(at::kCUDA);
  const auto windowed = attention::forward(qkv, 2, 2, attention::Mask({}, 9), deepseek);
  EXPECT_EQ(windowed.backend, attention::Backend::math);
  const auto lines = attention::new_choices();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cudnn is not given windows"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("flash takes values as wide as keys only"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace assay::impl::latent_attention_cuda_test
