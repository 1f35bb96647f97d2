// labels: gpu parity property
#include "impl/ops/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iostream>

#include "spec/error.hpp"
#include "spec/ops/rope.hpp"
#include "tests/impl/ops/attention_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_attention_test {
namespace {

TEST(AttentionCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check([] { parity::attention_matches_reference(at::kCUDA); }));
}

TEST(AttentionCuda, TheChoiceOfAShapeIsToldOnceWithItsReasons) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  const at::Tensor exact = tests::normal({1, 33, 4, 24}, 1, at::kFloat).to(at::kCUDA);
  for (int i = 0; i < 2; ++i) attention::forward(exact, 2, 1, {});
  const auto lines = attention::new_choices();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("math; cudnn and flash take bf16 only"), std::string::npos) << lines[0];
  EXPECT_TRUE(attention::new_choices().empty());
}

/// The trainer's own shape, grouped and not: which backend takes it is printed, and its result is held to the
/// plain products on the same numbers in fp32, relative to the largest entry.
TEST(AttentionCuda, TheTrainersShapesAreFusedAndMatchPlainProducts) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  for (const auto& [heads, kv_heads] : {std::pair{18, 18}, std::pair{16, 4}}) {
    const at::Tensor qkv = tests::normal({1, 512, heads + 2 * kv_heads, 128}, 1, at::kBFloat16).to(at::kCUDA),
                     dy = tests::normal({1, 512, heads, 128}, 2, at::kBFloat16).to(at::kCUDA);
    const auto out = attention::forward(qkv, heads, kv_heads, {});
    const at::Tensor dqkv = attention::backward(dy, qkv, out, heads, kv_heads, {});
    for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
    EXPECT_NE(out.backend, attention::Backend::math);
    const at::Tensor wide = qkv.to(at::kDouble);
    const auto plain = attention::aten::forward(wide, heads, kv_heads, {});
    const at::Tensor plain_dqkv =
        attention::aten::backward(dy.to(at::kDouble), wide, plain, heads, kv_heads, {});
    // Roundings to bf16 on the way to an entry: probability, y, dscore, delta, a head's part, the sum; each
    // at most once for terms whose sizes add up to less than the largest entry times the root of their
    // number.
    const double bound = 6 * unit_roundoff(Dtype::bf16) * std::sqrt(512.0);
    const auto share = [](const at::Tensor& got, const at::Tensor& want) {
      return ((got.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>();
    };
    EXPECT_LE(share(out.y, plain.y), 6 * unit_roundoff(Dtype::bf16));
    const double off = share(dqkv, plain_dqkv);
    EXPECT_LE(off, bound);
    const auto table = rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 512, at::kBFloat16,
                                   at::kCUDA),
               wide_table =
                   rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 512, at::kDouble, at::kCUDA);
    const at::Tensor before = attention::backward_through_rope(dy, qkv, out, heads, kv_heads, {}, table, {});
    rope::rotate(plain_dqkv, heads + kv_heads, wide_table, {}, /*inverse=*/true);
    // Turning a pair mixes its two errors, and rounds once more.
    EXPECT_LE(share(before, plain_dqkv), std::sqrt(2.0) * (bound + unit_roundoff(Dtype::bf16)));
    std::cout << "heads " << heads << "+2x" << kv_heads << ": y off by " << share(out.y, plain.y)
              << ", dqkv by " << off << " of the largest entry" << std::endl;
  }
}

TEST(AttentionCuda, AForcedBackendComputesOrSaysWhyItDoesNot) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = tests::normal({1, 256, 6, 64}, 1, at::kBFloat16).to(at::kCUDA),
                   dy = tests::normal({1, 256, 4, 64}, 2, at::kBFloat16).to(at::kCUDA);
  for (const auto& [forced, backend] : {std::pair{spec::AttentionBackend::cudnn, attention::Backend::cudnn},
                                        std::pair{spec::AttentionBackend::flash, attention::Backend::flash},
                                        std::pair{spec::AttentionBackend::math, attention::Backend::math}}) {
    const attention::Forced here(forced, at::kCUDA);
    const auto out = attention::forward(qkv, 4, 1, {});
    EXPECT_EQ(out.backend, backend);
    EXPECT_EQ(attention::backward(dy, qkv, out, 4, 1, {}).sizes(), qkv.sizes());
  }
  const attention::Forced here(spec::AttentionBackend::cudnn, at::kCUDA);
  try {
    attention::forward(qkv.to(at::kFloat), 4, 1, {});
    ADD_FAILURE() << "cudnn took fp32";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("compute.attention=cudnn refuses"), std::string::npos);
  }
}

TEST(AttentionCuda, ForwardGivesTheSameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({2, 256, 12, 64}, 1, type).to(at::kCUDA);
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = attention::forward(qkv, 8, 2, {});
      return std::vector{out.y, out.lse};
    })) << type;
  }
}

TEST(AttentionCuda, BackwardOfPlainProductsGivesTheSameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat}) {
    const at::Tensor qkv = tests::normal({2, 256, 12, 64}, 1, type).to(at::kCUDA),
                     dy = tests::normal({2, 256, 8, 64}, 2, type).to(at::kCUDA);
    const auto out = attention::forward(qkv, 8, 2, {});
    EXPECT_TRUE(tests::repeatable([&] { return std::vector{attention::backward(dy, qkv, out, 8, 2, {})}; }))
        << type;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_attention_test
