// labels: parity property
#include "impl/ops/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/attention.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using reference::Tensor;
using tests::Allowed;
using tests::exact;
using tests::values;

struct Drawn {
  at::ScalarType type;
  Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 30),
        E = *rc::gen::inRange<Index>(1, 20);
  Index K = *rc::gen::inRange<Index>(1, 3), H = K * *rc::gen::inRange<Index>(1, 4);
  reference::Ids documents;  // empty or nondecreasing; numbers that are left out are empty documents
  at::Tensor qkv, dy;

  explicit Drawn(at::ScalarType of) : type(of) {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const double scale = *rc::gen::element(0.3, 1.0, 3.0);  // nearly uniform to nearly one-hot probabilities
    qkv = tests::normal({B, T, H + 2 * K, E}, seed, type, scale);
    dy = tests::normal({B, T, H, E}, seed + 1, type);
    if (!*rc::gen::arbitrary<bool>()) return;
    for (Index n = 0; n < B * T; ++n)
      documents.push_back((n % T ? documents.back() : 0) +
                          (*rc::gen::inRange(0, 4) ? 0 : *rc::gen::inRange(1, 3)));
  }
  at::Tensor mask() const {
    return documents.empty() ? at::Tensor() : tests::integers(documents, at::kInt).view({B, T});
  }
  at::Tensor q(const at::Tensor& all) const { return all.narrow(2, 0, H); }
  at::Tensor k(const at::Tensor& all) const { return all.narrow(2, H, K); }
  at::Tensor v(const at::Tensor& all) const { return all.narrow(2, H + K, K); }
};

/// Bounds term by term, first order in each rounding with the exponential's growth kept. For row (b, h, t)
/// and key s:
///   score: E products, the scale and its rounding -> gamma_{E+3} scale sum |q k|;
///   exponent score - maximum or score - lse: that, and 2 roundings of each of the numbers in it;
///   probability: relative error of two exponents (its own and the sum's), T additions, exp, quotient.
class Bounds {
 public:
  Bounds(const Drawn& d, const reference::attention::Forward<double>& truth)
      : d_(d),
        rounding_(tests::rounding_of(d.type)),
        truth_(truth),
        q_(exact(d.q(d.qkv))),
        k_(exact(d.k(d.qkv))),
        v_(exact(d.v(d.qkv))),
        dy_(exact(d.dy)),
        y_({d.B, d.T, d.H, d.E}),
        lse_({d.B, d.H, d.T}),
        dqkv_({d.B, d.T, d.H + 2 * d.K, d.E}) {
    for (Index b = 0; b < d.B; ++b)
      for (Index h = 0; h < d.H; ++h)
        for (Index t = 0; t < d.T; ++t) row(b, h, t);
  }
  Allowed y() const { return stored(y_, truth_.y); }
  Allowed lse() const {
    return tests::each(lse_.size(), [&](Index i) { return lse_[i]; });
  }
  Allowed dqkv(const Tensor<double>& expected) const { return stored(dqkv_, expected); }

 private:
  Allowed stored(const Tensor<double>& bound, const Tensor<double>& value) const {
    return tests::each(bound.size(), [&](Index i) { return rounding_.stored(value[i], bound[i]); });
  }
  bool visible(Index b, Index t, Index s) const {
    const auto at = [&](Index n) { return d_.documents[static_cast<std::size_t>(b * d_.T + n)]; };
    return s <= t && (d_.documents.empty() || at(s) == at(t));
  }

  void row(Index b, Index h, Index t) {
    const Index kv = h / (d_.H / d_.K), T = d_.T, E = d_.E;
    const double scale = 1 / std::sqrt(static_cast<double>(E)), n = static_cast<double>(T),
                 e = static_cast<double>(E);
    std::vector<double> score(static_cast<std::size_t>(T)), upstream(score);
    double score_error = 0, largest = 0;
    for (Index s = 0; s <= t; ++s) {
      if (!visible(b, t, s)) continue;
      double sizes = 0;
      for (Index i = 0; i < E; ++i) {
        score[s] += scale * q_(b, t, h, i) * k_(b, s, kv, i);
        sizes += scale * std::abs(q_(b, t, h, i) * k_(b, s, kv, i));
        upstream[s] += std::abs(dy_(b, t, h, i) * v_(b, s, kv, i));
      }
      score_error = std::max(score_error, rounding_.gamma(e + 3) * sizes);
      largest = std::max(largest, std::abs(score[s]));
    }
    const double lse = truth_.lse(b, h, t);
    const double exponent = score_error + rounding_.gamma(4) * (2 * largest + std::abs(lse));
    lse_(b, h, t) = std::expm1(exponent) + rounding_.gamma(n + 4) + rounding_.gamma(2) * std::abs(lse);
    const double relative = std::expm1(2 * exponent + lse_(b, h, t) + rounding_.gamma(n + 6));

    double delta = 0;  // sum over s of p * sum of |dy v|
    for (Index s = 0; s <= t; ++s)
      if (visible(b, t, s)) delta += std::exp(score[s] - lse) * upstream[s];
    const double rows = n * static_cast<double>(d_.H / d_.K);  // terms of dk and dv
    for (Index s = 0; s <= t; ++s) {
      if (!visible(b, t, s)) continue;
      const double p = std::exp(score[s] - lse) + rounding_.smallest;
      const double dscore = p * scale * (upstream[s] + delta);
      const double dscore_error = 2 * relative + rounding_.gamma(n + e + 8);
      for (Index i = 0; i < E; ++i) {
        y_(b, t, h, i) += (relative + rounding_.gamma(n)) * p * std::abs(v_(b, s, kv, i));
        dqkv_(b, t, h, i) += (dscore_error + rounding_.gamma(n)) * dscore * std::abs(k_(b, s, kv, i));
        dqkv_(b, s, d_.H + kv, i) +=
            (dscore_error + rounding_.gamma(rows)) * dscore * std::abs(q_(b, t, h, i));
        dqkv_(b, s, d_.H + d_.K + kv, i) +=
            (relative + rounding_.gamma(rows)) * p * std::abs(dy_(b, t, h, i));
      }
    }
  }

  const Drawn& d_;
  tests::Rounding rounding_;
  reference::attention::Forward<double> truth_;
  Tensor<double> q_, k_, v_, dy_, y_, lse_, dqkv_;
};

/// q, k and v side by side as in the trainer's qkv.
Tensor<double> joined(const reference::attention::Backward<double>& gradient) {
  const auto tensor = [](const Tensor<double>& from) { return tests::rounded(from, at::kDouble); };
  return exact(at::cat({tensor(gradient.dq), tensor(gradient.dk), tensor(gradient.dv)}, 2));
}

RC_GTEST_PROP(AttentionImpl, MatchesReference, ()) {
  const Drawn d(tests::draw_dtype());
  const auto q = exact(d.q(d.qkv)), k = exact(d.k(d.qkv)), v = exact(d.v(d.qkv));
  const auto expected = reference::attention::forward(q, k, v, d.documents);
  const auto gradient = joined(reference::attention::backward(exact(d.dy), q, k, v, expected, d.documents));
  const Bounds bounds(d, expected);
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const auto out = (generic ? attention::aten::forward : attention::forward)(d.qkv, d.H, d.K, d.mask());
    RC_ASSERT(out.y.scalar_type() == d.type && out.lse.scalar_type() == tests::math_of(d.type));
    ASSAY_RC_CLOSE(values(out.y), values(expected.y), bounds.y());
    ASSAY_RC_CLOSE(values(out.lse), values(expected.lse), bounds.lse());
    const at::Tensor dqkv =
        (generic ? attention::aten::backward : attention::backward)(d.dy, d.qkv, out, d.H, d.K, d.mask());
    ASSAY_RC_CLOSE(values(dqkv), values(gradient), bounds.dqkv(gradient));
  }
}

RC_GTEST_PROP(AttentionImpl, AgreesWithAutograd, ()) {
  const Drawn d(at::kDouble);
  const at::Tensor leaf = tests::leaf(d.qkv), mask = d.mask();
  const auto repeated = [&](const at::Tensor& x) {
    return x.transpose(1, 2).repeat_interleave(d.H / d.K, 1);
  };
  at::Tensor visible = at::ones({1, 1, d.T, d.T}, at::kBool).tril();
  if (mask.defined())
    visible = visible.logical_and(mask.view({d.B, 1, d.T, 1}).eq(mask.view({d.B, 1, 1, d.T})));
  const at::Tensor y = at::scaled_dot_product_attention(d.q(leaf).transpose(1, 2), repeated(d.k(leaf)),
                                                        repeated(d.v(leaf)), visible)
                           .transpose(1, 2);
  const at::Tensor theirs = tests::autograd(y, d.dy, {leaf})[0];

  const auto out = attention::forward(d.qkv, d.H, d.K, mask);
  const Bounds bounds(d, {exact(out.y), exact(out.lse)});
  ASSAY_RC_CLOSE(values(out.y), values(y), bounds.y());
  ASSAY_RC_CLOSE(values(attention::backward(d.dy, d.qkv, out, d.H, d.K, mask)), values(theirs),
                 bounds.dqkv(exact(theirs)));
}

RC_GTEST_PROP(AttentionImpl, DocumentsAreAttendedApart, ()) {
  // Two documents in one sequence give the bits of each alone: neither sees the other, and no sum changes its
  // order.
  const Index first = *rc::gen::inRange<Index>(1, 40), second = *rc::gen::inRange<Index>(1, 40);
  const auto type = tests::draw_dtype();
  const at::Tensor qkv = tests::normal({1, first + second, 4, 8}, *rc::gen::arbitrary<std::uint64_t>(), type);
  const at::Tensor documents = at::cat({at::zeros({1, first}, at::kInt), at::ones({1, second}, at::kInt)}, 1);
  const auto together = attention::forward(qkv, 2, 1, documents);
  const auto alone = attention::forward(qkv.narrow(1, 0, first).contiguous(), 2, 1, {});
  RC_ASSERT(tests::same_bits(together.y.narrow(1, 0, first), alone.y));
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
  const auto forward = [](reference::Shape shape, Index heads, Index kv_heads, const at::Tensor& documents) {
    return tests::refusal([&] { attention::forward(at::ones(shape), heads, kv_heads, documents); });
  };
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, {}), "accepted");
  EXPECT_EQ(forward({1, 3, 5, 2}, 2, 1, {}), "attention_c1");
  EXPECT_EQ(forward({1, 3, 7, 2}, 3, 2, {}), "attention_c2");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, tests::integers({0, 0}, at::kInt)), "attention_c3");
  EXPECT_EQ(forward({1, 3, 4, 2}, 2, 1, tests::integers({0, 1, 0}, at::kInt)), "attention_c4");
  EXPECT_EQ(forward({1, 3, 4, 0}, 2, 1, {}), "attention_c5");
}

// What reads these tensors walks through them in order: linear's product, rope's gradient, the next backward.
TEST(AttentionImpl, BothImplementationsGiveContiguousTensors) {
  constexpr std::int64_t B = 2, T = 5, H = 4, K = 2, E = 8;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({B, T, H + 2 * K, E}, 1, type);
    const at::Tensor dy = tests::normal({B, T, H, E}, 2, type);
    for (const bool fused : {true, false}) {
      const auto saved = (fused ? attention::cpu::forward : attention::aten::forward)(qkv, H, K, {});
      const at::Tensor dqkv =
          (fused ? attention::cpu::backward : attention::aten::backward)(dy, qkv, saved, H, K, {});
      EXPECT_EQ(saved.y.sizes(), at::IntArrayRef({B, T, H, E}));
      EXPECT_TRUE(saved.y.is_contiguous() && saved.lse.is_contiguous() && dqkv.is_contiguous())
          << at::toString(type) << (fused ? " fused" : " aten") << ": " << saved.y.is_contiguous()
          << saved.lse.is_contiguous() << dqkv.is_contiguous();
    }
  }
}

}  // namespace
}  // namespace assay::impl
