// labels: gpu parity property
// Windows by FlashAttention's own, in plain batches and with documents told apart.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "spec/error.hpp"
#include "spec/ops/attention/attention.hpp"
#include "tests/impl/ops/parity/attention_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_attention_window_test {
namespace {

using attention::Backend;
using attention::Mask;

const at::Device gpu(at::kCUDA, 0);

/// Two sequences of 500 tokens: whole, or each of documents of 1, 200 and 299.
Documents documents_of(bool told_apart) {
  if (!told_apart) return {};
  std::vector<std::int32_t> numbers;
  for (int b = 0; b < 2; ++b)
    for (const auto& [number, tokens] : {std::pair{0, 1}, std::pair{1, 200}, std::pair{2, 299}})
      numbers.insert(numbers.end(), static_cast<std::size_t>(tokens), number);
  const auto offsets = data::document_offsets(numbers, 500);
  return {at::tensor(numbers, at::kInt).view({2, 500}).to(gpu), at::tensor(offsets, at::kInt).to(gpu),
          offsets};
}

at::Tensor drawn(std::int64_t heads, std::int64_t E, std::uint64_t seed) {
  return tests::normal({2, 500, heads, E}, seed, at::kBFloat16).to(gpu);
}

TEST(AttentionWindowCuda, DrawnWindowsAreComputedByFlashAndMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    parity::AttentionDrawn d(at::kBFloat16, gpu, /*fused_documents=*/true);
    d.window = *rc::gen::inRange<std::int64_t>(1, d.T);
    if (*rc::gen::arbitrary<bool>()) d.documents.clear();
    parity::attention_matches_reference(d, Backend::flash);
  }));
}

/// Windows around the kernels' tiles of 64 and 128 tokens against plain products in fp64.
TEST(AttentionWindowCuda, WindowsOfManyTilesMatchPlainProducts) {
  ASSAY_NEEDS_GPU();
  for (const bool told_apart : {false, true})
    for (const std::int64_t window : {1, 2, 63, 64, 65, 128, 129, 300, 499})
      for (const auto& [H, K, E] : {std::tuple{8, 8, 128}, std::tuple{8, 2, 64}}) {
        SCOPED_TRACE(window);
        const Mask mask(documents_of(told_apart), window);
        const at::Tensor qkv = drawn(H + 2 * K, E, 1), dy = drawn(H, E, 2), wide = qkv.to(at::kDouble);
        const auto out = attention::forward(qkv, H, K, mask);
        EXPECT_EQ(out.backend, Backend::flash);
        EXPECT_TRUE(out.y.is_contiguous() && out.lse.is_contiguous());
        const auto plain = attention::aten::forward({wide, H, K}, mask);
        EXPECT_LE(parity::share_of_largest(out.y, plain.y), 6 * unit_roundoff(Dtype::bf16));
        EXPECT_LE((out.lse - plain.lse).abs().max().item<double>(),
                  parity::fused_lse_bound(qkv, H, K, plain.lse));
        const at::Tensor dqkv = attention::backward(dy, qkv, out, H, K, mask),
                         plain_dqkv =
                             attention::aten::backward(dy.to(at::kDouble), {wide, H, K}, plain, mask).joined;
        EXPECT_LE(parity::relative_norm(dqkv, plain_dqkv), parity::gradient_norm_bound);
      }
}

/// What a token does not see it does not read: other numbers there leave its bits.
TEST(AttentionWindowCuda, ATokenBeforeTheWindowChangesNothing) {
  ASSAY_NEEDS_GPU();
  const Mask mask({}, 100);
  const at::Tensor qkv = drawn(8, 64, 1);
  at::Tensor changed = qkv.clone();
  changed.narrow(1, 200, 1).fill_(3);
  const auto before = attention::forward(qkv, 4, 2, mask), after = attention::forward(changed, 4, 2, mask);
  const auto part = [](const attention::Forward& out, std::int64_t t, std::int64_t n) {
    return out.y.narrow(1, t, n);
  };
  EXPECT_TRUE(tests::same_bits(part(before, 0, 200), part(after, 0, 200)));
  EXPECT_FALSE(tests::same_bits(part(before, 299, 1), part(after, 299, 1)));
  EXPECT_TRUE(tests::same_bits(part(before, 300, 200), part(after, 300, 200)));
}

TEST(AttentionWindowCuda, GivesTheSameBitsTwiceInAFixedOrder) {
  ASSAY_NEEDS_GPU();
  const Mask mask({}, 100);
  const at::Tensor qkv = drawn(12, 64, 1), dy = drawn(8, 64, 2);
  set_deterministic(true);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto out = attention::forward(qkv, 8, 2, mask);
    return std::vector{out.y, out.lse, attention::backward(dy, qkv, out, 8, 2, mask)};
  }));
  set_deterministic(false);
}

TEST(AttentionWindowCuda, FlopsAreThoseOfThePairsInside) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = drawn(12, 64, 1), dy = drawn(8, 64, 2);
  for (const bool told_apart : {false, true}) {
    const Mask mask(documents_of(told_apart), 100);
    const Count pairs =
        told_apart ? Count(mask.visible_pairs()) : 2 * spec::attention::document_pairs(500, 100);
    const metrics::FlopCounter counter;
    const auto out = attention::forward(qkv, 8, 2, mask);
    const Count forward = 4 * Count(8) * 64 * pairs;
    EXPECT_EQ(counter.measured().total(), forward);
    attention::backward(dy, qkv, out, 8, 2, mask);
    EXPECT_EQ((counter.measured().total() - forward) * 2, 5 * forward);
  }
}

TEST(AttentionWindowCuda, CudnnIsNotGivenWindowsThatLeaveSomethingOut) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = drawn(4, 64, 1);
  EXPECT_EQ(attention::forward(qkv, 2, 1, Mask({}, 500)).backend, Backend::cudnn);
  try {
    attention::forward(qkv, 2, 1, Mask({}, 499), {.backend = Backend::cudnn});
    ADD_FAILURE() << "cudnn took a window";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("cudnn is not given windows"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::impl::cuda_attention_window_test
