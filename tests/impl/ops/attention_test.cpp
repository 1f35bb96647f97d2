// labels: parity property
#include "impl/ops/attention/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/rope/rope.hpp"
#include "spec/tolerance.hpp"
#include "tests/impl/ops/parity/attention_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::attention_test {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

RC_GTEST_PROP(AttentionImpl, MatchesReference, ()) { parity::attention_matches_reference(at::kCPU); }
RC_GTEST_PROP(AttentionImpl, OfASpanMatchesReference, ()) {
  parity::attention_of_a_span_matches_reference(at::kCPU);
}

/// Queries behind all keys see what the last one of the keys' own would see, each for itself. Both sides are
/// off by what spec/ops/attention/attention.md allows of a probability over n keys, r = 2 d + gamma_{2n+4}.
TEST(AttentionImpl, QueriesBehindTheKeysSeeAllOfThem) {
  constexpr std::int64_t T = 14, S = 9, H = 4, K = 2, E = 5, W = 3;
  const at::Tensor q = tests::normal({2, T, H, E}, 1, at::kDouble),
                   k = tests::normal({2, S, K, E}, 2, at::kDouble),
                   v = tests::normal({2, S, K, W}, 3, at::kDouble),
                   dy = tests::normal({2, T, H, W}, 4, at::kDouble);
  const auto longest = [](const at::Tensor& x) { return x.norm(2, -1).max().item<double>(); };
  const auto gamma = [](double n) { return assay::gamma(n, unit_roundoff(Dtype::f64)); };
  const double scale = 1 / std::sqrt(static_cast<double>(E)),
               d = gamma(E + 2) * scale * longest(q) * longest(k), r = 2 * d + gamma(2 * S + 4),
               upstream = 2 * longest(dy) * longest(v),  // |dp - delta|
      dscore = scale * upstream * (2 * r + gamma(2 * W + S + 6)), terms = T * H / K;
  for (const auto backend : {attention::Backend::automatic, attention::Backend::math}) {
    const attention::Mask behind({}, 0, S), last({}, 0, S - 1);
    const auto out = attention::forward({q, k, v}, behind, backend);
    const auto all = attention::backward(dy, {q, k, v}, out, behind);
    at::Tensor dk = at::zeros_like(k), dv = at::zeros_like(v);
    const auto off = [](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).abs().max().item<double>();
    };
    for (std::int64_t t = 0; t < T; ++t) {
      const attention::Heads one(q.narrow(1, t, 1), k, v);
      const auto alone = attention::forward(one, last, backend);
      EXPECT_LE(off(out.y.narrow(1, t, 1), alone.y), 2 * r * longest(v));
      const auto of_one = attention::backward(dy.narrow(1, t, 1).contiguous(), one, alone, last);
      EXPECT_LE(off(all.dq.narrow(1, t, 1), of_one.dq),
                2 * (dscore + gamma(S) * scale * upstream) * longest(k));
      dk += of_one.dk, dv += of_one.dv;
    }
    EXPECT_LE(off(all.dk, dk), 2 * terms * (dscore + gamma(terms) * scale * upstream) * longest(q));
    EXPECT_LE(off(all.dv, dv), 2 * terms * (r + gamma(terms)) * longest(dy));
    EXPECT_GT(all.dk.abs().max().item<double>(), 0.1);
  }
}

/// The bound of whole tensors holds each row's own, and shows an lse that is off by a hundredth of a percent.
TEST(AttentionImpl, LseOfManyTokensIsWithinItsBound) {
  const std::int64_t H = 4, K = 2, E = 64;
  const at::Tensor qkv = tests::normal({2, 500, H + 2 * K, E}, 1, at::kBFloat16);
  const at::Tensor plain = attention::aten::forward({qkv.to(at::kDouble), H, K}, {}).lse;
  const double bound = parity::fused_lse_bound(qkv, H, K, plain);
  const auto off = [&](const at::Tensor& lse) { return (lse - plain).abs().max().item<double>(); };
  EXPECT_LE(off(attention::forward(qkv, H, K, {}).lse), bound);
  EXPECT_GT(off(plain * (1 + 1e-4)), bound);
}

TEST(AttentionImpl, PlainProductsComputeBothPassesWhereTheyAreAskedFor) {
  const at::Tensor qkv = tests::normal({2, 37, 4, 8}, 1, at::kFloat),
                   dy = tests::normal({2, 37, 2, 8}, 2, at::kFloat);
  const attention::Form form{.backend = attention::Backend::math};
  const attention::Forward asked = attention::forward(qkv, 2, 1, {}, form),
                           plain = attention::aten::forward({qkv, 2, 1}, {}),
                           loops = attention::forward(qkv, 2, 1, {});
  EXPECT_EQ(asked.backend, attention::Backend::math);
  EXPECT_EQ(loops.backend, attention::Backend::loops);
  EXPECT_TRUE(at::equal(asked.y, plain.y));
  EXPECT_TRUE(at::equal(attention::backward(dy, qkv, asked, 2, 1, {}, form),
                        attention::aten::backward(dy, {qkv, 2, 1}, plain, {}).joined));
  EXPECT_FALSE(at::equal(attention::backward(dy, qkv, loops, 2, 1, {}),
                         attention::aten::backward(dy, {qkv, 2, 1}, plain, {}).joined))
      << "sums in another order";
}

RC_GTEST_PROP(AttentionImpl, AgreesWithAutograd, ()) {
  const parity::AttentionDrawn d(at::kDouble, at::kCPU);
  const at::Tensor leaf = tests::leaf(d.qkv), numbers = d.numbers();
  const auto repeated = [&](const at::Tensor& x) {
    return x.transpose(1, 2).repeat_interleave(d.H / d.K, 1);
  };
  at::Tensor visible = at::ones({1, 1, d.T, d.T}, at::kBool).tril();
  if (d.window > 0) visible = visible.logical_and(at::ones({d.T, d.T}, at::kBool).triu(1 - d.window));
  if (numbers.defined())
    visible = visible.logical_and(numbers.view({d.B, 1, d.T, 1}).eq(numbers.view({d.B, 1, 1, d.T})));
  const double scale = d.form.score_factor / std::sqrt(static_cast<double>(d.E));
  const at::Tensor y =
      at::scaled_dot_product_attention(d.q(leaf).transpose(1, 2), repeated(d.k(leaf)), repeated(d.v(leaf)),
                                       visible, 0.0, /*is_causal=*/false, scale)
          .transpose(1, 2);
  const at::Tensor theirs = tests::autograd(y, d.dy, {leaf})[0];

  const auto out = attention::forward(d.qkv, d.H, d.K, d.mask(), d.form);
  const parity::AttentionBounds bounds(d, {exact(out.y), exact(out.lse)});
  ASSAY_RC_CLOSE(values(out.y), values(y), bounds.y());
  ASSAY_RC_CLOSE(values(attention::backward(d.dy, d.qkv, out, d.H, d.K, d.mask(), d.form)), values(theirs),
                 bounds.dqkv(exact(theirs)));
}

TEST(AttentionImpl, PairsOfADocumentAreCountedOnceEach) {
  const Documents documents({}, {}, {0, 2, 3, 6, 6, 6});
  EXPECT_EQ(attention::Mask(documents).visible_pairs(), 3 + 1 + 6);
  EXPECT_EQ(attention::Mask(documents, 2).visible_pairs(), 3 + 1 + 5);
  EXPECT_EQ(attention::Mask(documents, 9).visible_pairs(), 3 + 1 + 6);
  EXPECT_EQ(attention::Mask().visible_pairs(), 0);
}

RC_GTEST_PROP(AttentionImpl, PairsByOffsetsAreThoseOfTheSpec, ()) {
  const parity::AttentionDrawn d(at::kFloat, at::kCPU, /*fused_documents=*/true);
  const spec::attention::Shape shape{.B = d.B, .T = d.T, .H = d.H, .K = d.K, .E = d.E};
  RC_ASSERT(Count(d.mask().visible_pairs()) ==
            spec::attention::visible_pairs(shape, {d.documents, d.window}));
}

/// A window as long as the sequence leaves nothing out; a token then has the bits that it has without.
TEST(AttentionImpl, AWindowAsLongAsTheSequenceChangesNothing) {
  const at::Tensor qkv = tests::normal({2, 37, 4, 8}, 1, at::kFloat),
                   dy = tests::normal({2, 37, 2, 8}, 2, at::kFloat);
  const auto all = attention::forward(qkv, 2, 1, {});
  for (const std::int64_t window : {37, 38, 1000}) {
    const attention::Mask mask({}, window);
    EXPECT_EQ(spec::attention::window_within(window, 37), 0);
    const auto out = attention::forward(qkv, 2, 1, mask);
    EXPECT_TRUE(tests::same_bits(out.y, all.y));
    EXPECT_TRUE(tests::same_bits(attention::backward(dy, qkv, out, 2, 1, mask),
                                 attention::backward(dy, qkv, all, 2, 1, {})));
  }
  const auto less = attention::forward(qkv, 2, 1, attention::Mask({}, 36));
  EXPECT_TRUE(tests::same_bits(less.y.narrow(1, 0, 36), all.y.narrow(1, 0, 36)));
  EXPECT_FALSE(tests::same_bits(less.y, all.y));
}

RC_GTEST_PROP(AttentionImpl, DocumentsAreAttendedApart, ()) {
  // Two documents in one sequence give the bits of each alone: neither sees the other, and no sum changes its
  // order.
  const Index first = *rc::gen::inRange<Index>(1, 40), second = *rc::gen::inRange<Index>(1, 40);
  const auto type = tests::draw_dtype();
  const at::Tensor qkv = tests::normal({1, first + second, 4, 8}, *rc::gen::arbitrary<std::uint64_t>(), type);
  const at::Tensor documents = at::cat({at::zeros({1, first}, at::kInt), at::ones({1, second}, at::kInt)}, 1);
  const auto together = attention::forward(qkv, 2, 1, Documents(documents));
  const auto alone = attention::forward(qkv.narrow(1, 0, first).contiguous(), 2, 1, {});
  RC_ASSERT(tests::same_bits(together.y.narrow(1, 0, first), alone.y));
}

TEST(AttentionImpl, BackwardThroughRopeIsBackwardAndThenRopeTurnedBack) {
  const at::Tensor qkv = tests::normal({2, 17, 8, 12}, 1, at::kFloat),
                   dy = tests::normal({2, 17, 4, 12}, 2, at::kFloat);
  const auto table = rope::table(spec::rope::inverse_frequencies(12, 10000, {}), 17, at::kFloat, at::kCPU);
  const auto out = attention::forward(qkv, 4, 2, {});
  const at::Tensor dqkv = attention::backward(dy, qkv, out, 4, 2, {});
  rope::rotate(dqkv, 6, table, {}, /*inverse=*/true);
  EXPECT_TRUE(
      tests::same_bits(parity::turned_back(attention::backward(dy, {qkv, 4, 2}, out, {}), table, {}), dqkv));
}

TEST(AttentionImpl, SameBitsOnAnyNumberOfThreads) {
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({3, 70, 8, 12}, 1, type),
                     dy = tests::normal({3, 70, 4, 12}, 2, type);
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = attention::forward(qkv, 4, 2, {});
      return std::vector{out.y, out.lse, attention::backward(dy, qkv, out, 4, 2, {})};
    })) << type;
  }
}

TEST(AttentionImpl, ConstraintsAreChecked) {
  const auto forward = [](reference::Shape shape, Index heads, Index kv_heads, const at::Tensor& documents,
                          Index window = 0) {
    return tests::refusal([&] { attention::forward(at::ones(shape), heads, kv_heads, {documents, window}); });
  };
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, {}), "accepted");
  EXPECT_EQ(forward({1, 3, 5, 2}, 2, 1, {}), "attention_c1");
  EXPECT_EQ(forward({1, 3, 7, 2}, 3, 2, {}), "attention_c2");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, tests::integers({0, 0}, at::kInt)), "attention_c3");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, tests::integers({0, 1, 0}, at::kInt)), "attention_c4");
  EXPECT_EQ(forward({1, 3, 4, 0}, 2, 1, {}), "attention_c5");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, {}, -1), "attention_c6");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, tests::integers({0, 0, 1}, at::kInt), -1), "attention_c6");
}

// What reads these tensors walks through them in order: linear's product, rope's gradient, the next backward.
TEST(AttentionImpl, BothImplementationsGiveContiguousTensors) {
  constexpr std::int64_t B = 2, T = 5, H = 4, K = 2, E = 8;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({B, T, H + 2 * K, E}, 1, type);
    const at::Tensor dy = tests::normal({B, T, H, E}, 2, type);
    for (const bool fused : {true, false}) {
      const auto saved = (fused ? attention::cpu::forward : attention::aten::forward)({qkv, H, K}, {});
      const at::Tensor dqkv =
          (fused ? attention::cpu::backward : attention::aten::backward)(dy, {qkv, H, K}, saved, {}).joined;
      EXPECT_EQ(saved.y.sizes(), at::IntArrayRef({B, T, H, E}));
      EXPECT_TRUE(saved.y.is_contiguous() && saved.lse.is_contiguous() && dqkv.is_contiguous())
          << at::toString(type) << (fused ? " fused" : " aten") << ": " << saved.y.is_contiguous()
          << saved.lse.is_contiguous() << dqkv.is_contiguous();
    }
  }
}

}  // namespace
}  // namespace assay::impl::attention_test
