#pragma once
// attention against the reference, on any device.
#include <rapidcheck.h>

#include "impl/data/document_offsets.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/rope/rope.hpp"
#include "reference/ops/attention.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

struct AttentionDrawn {
  at::ScalarType type;
  at::Device device;
  bool always_fused;
  /// On a GPU half of the cases have the head dimensions that fused kernels are made for.
  bool even = always_fused || (device.is_cuda() && *rc::gen::arbitrary<bool>());
  Index B = *rc::gen::inRange<Index>(1, 3),
        T = *rc::gen::inRange<Index>(always_fused ? 2 : 1, even ? 150 : 30),
        E = even ? *rc::gen::element<Index>(8, 32, 64, 128) : *rc::gen::inRange<Index>(1, 20);
  Index K = *rc::gen::inRange<Index>(1, 3), H = K * *rc::gen::inRange<Index>(1, 4);
  /// Some have values of a width of their own, and scores with a factor, as latent attention.
  bool formed = !always_fused && *rc::gen::inRange(0, 3) == 0;
  Index W = !formed ? E
                    // Without other tokens in sight all gradients but dv are 0: 4 E entries for each W at
                    // most, which are not to be more than 7 of 8.
                    : std::max((4 * E + 6) / 7, even ? *rc::gen::element<Index>(8, 32, 64, 128)
                                                     : *rc::gen::inRange<Index>(1, 20));
  attention::Form form = formed ? attention::Form{.value_dim = W, .score_factor = 1.5} : attention::Form{};
  reference::Ids documents;  // empty or nondecreasing; numbers that are left out are empty documents
  Index window = *rc::gen::arbitrary<bool>() ? *rc::gen::inRange<Index>(1, T + 2) : 0;
  at::Tensor qkv, dy;

  /// `fused_documents`: documents are told apart, in a shape that fused kernels are made for.
  AttentionDrawn(at::ScalarType of, at::Device where, bool fused_documents = false)
      : type(of), device(where), always_fused(fused_documents) {
    if (formed && even && *rc::gen::arbitrary<bool>())
      E = 192, W = form.value_dim = 128, K = H;  // DeepSeek-V3's heads, which cuDNN has kernels for
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const double scale = *rc::gen::element(0.3, 1.0, 3.0);  // nearly uniform to nearly one-hot probabilities
    qkv = tests::normal(formed ? reference::Shape{B, T, columns()} : reference::Shape{B, T, H + 2 * K, E},
                        seed, type, scale);
    dy = tests::normal({B, T, H, W}, seed + 1, type);
    if (!fused_documents && !*rc::gen::arbitrary<bool>()) return;
    const int rare = fused_documents ? *rc::gen::element(1, 4, 50, 1000) : 4;
    for (Index n = 0; n < B * T; ++n)
      documents.push_back((n % T ? documents.back() : 0) +
                          (*rc::gen::inRange(0, rare) ? 0 : *rc::gen::inRange(1, 3)));
  }
  at::Tensor numbers() const {
    return documents.empty() ? at::Tensor() : tests::integers(documents, at::kInt).view({B, T});
  }
  /// As the loader gives them.
  Documents told_apart() const {
    if (documents.empty()) return {};
    const auto offsets =
        data::document_offsets(std::vector<std::int32_t>(documents.begin(), documents.end()), T);
    return {numbers().to(device), at::tensor(offsets, at::kInt).to(device), offsets};
  }
  attention::Mask mask() const { return {told_apart(), window}; }
  spec::attention::Mask mask_of_spec() const { return {documents, window}; }
  Index columns() const { return (H + K) * E + K * W; }  ///< entries of q | k | v of a token
  at::Tensor q(const at::Tensor& all) const { return part(all, 0, H, E); }
  at::Tensor k(const at::Tensor& all) const { return part(all, H * E, K, E); }
  at::Tensor v(const at::Tensor& all) const { return part(all, (H + K) * E, K, W); }

 private:
  static at::Tensor part(const at::Tensor& all, Index first, Index heads, Index width) {
    return all.flatten(2).narrow(2, first, heads * width).unflatten(2, {heads, width});
  }
};

/// Error of one row's lse, of scores up to `largest` that are off by `score_error` at most, over `keys` keys.
/// The exponents score - maximum: the score's error, and 2 roundings of each of the numbers in it. Their sum
/// and its logarithm: `keys` additions, exp, log. Fused kernels have exp2 and log2 of the hardware, each
/// within 2^-22 (PTX ISA, ex2.approx and lg2.approx).
inline double lse_error(const tests::Rounding& rounding, double score_error, double largest, double lse,
                        double keys, bool fused) {
  const double exponent = score_error + rounding.gamma(4) * (2 * largest + std::abs(lse));
  return std::expm1(exponent) + rounding.gamma(keys + 2 + rounding.exponential) +
         rounding.gamma(2) * std::abs(lse) + (fused ? 0x1p-21 : 0);
}

/// Of every entry of a fused kernel's lse, by the longest query and key: a score is of E products, the scale
/// and its rounding, which add up to scale |q| |k| at most.
inline double fused_lse_bound(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads,
                              const at::Tensor& lse) {
  const auto longest = [&](std::int64_t first, std::int64_t count) {
    return qkv.narrow(2, first, count).to(at::kDouble).norm(2, -1).max().item<double>();
  };
  const auto rounding = tests::rounding_of(qkv.scalar_type(), qkv.device());
  const double E = static_cast<double>(qkv.size(3)),
               largest = longest(0, heads) * longest(heads, kv_heads) / std::sqrt(E);
  return lse_error(rounding, rounding.gamma(E + 3) * largest, largest, lse.abs().max().item<double>(),
                   static_cast<double>(qkv.size(1)), true);
}

/// Bounds term by term, first order in each rounding with the exponential's growth kept. For row (b, h, t)
/// and key s:
///   score: E products, the scale and its rounding -> gamma_{E+3} scale sum |q k|;
///   lse: lse_error;
///   probability: relative error of two exponents (its own and the sum's), T additions, exp, quotient.
/// Fused kernels hand probabilities and dscores to their products in bf16 (`handed`), take delta from a
/// stored y, and store a group's dk and dv of each query head before they are added.
class AttentionBounds {
 public:
  AttentionBounds(const AttentionDrawn& d, const reference::attention::Forward<double>& truth)
      : d_(d),
        rounding_(tests::rounding_of(d.type, d.device)),
        handed_(d.device.is_cuda() ? rounding_.store : 0),
        truth_(truth),
        q_(exact(d.q(d.qkv))),
        k_(exact(d.k(d.qkv))),
        v_(exact(d.v(d.qkv))),
        dy_(exact(d.dy)),
        y_({d.B, d.T, d.H, d.W}),
        lse_({d.B, d.H, d.T}),
        dqkv_({d.B, d.T, d.columns()}) {
    for (Index b = 0; b < d.B; ++b)
      for (Index h = 0; h < d.H; ++h)
        for (Index t = 0; t < d.T; ++t) row(b, h, t);
  }
  tests::Allowed y() const { return stored(y_, truth_.y); }
  tests::Allowed lse() const {
    return tests::each(lse_.size(), [&](Index i) { return lse_[i]; });
  }
  tests::Allowed dqkv(const reference::Tensor<double>& expected) const { return stored(dqkv_, expected); }

 private:
  tests::Allowed stored(const reference::Tensor<double>& bound,
                        const reference::Tensor<double>& value) const {
    return tests::each(bound.size(), [&](Index i) { return rounding_.stored(value[i], bound[i]); });
  }
  bool visible(Index b, Index t, Index s) const {
    const auto at = [&](Index n) { return d_.documents[static_cast<std::size_t>(b * d_.T + n)]; };
    return s <= t && (d_.window == 0 || t - s < d_.window) && (d_.documents.empty() || at(s) == at(t));
  }

  /// Elements by their place: to look up four indices costs more than all that is done with an element.
  void row(Index b, Index h, Index t) {
    const Index kv = h / (d_.H / d_.K), T = d_.T, E = d_.E, W = d_.W;
    const Index query = ((b * T + t) * d_.H + h) * E, out = ((b * T + t) * d_.H + h) * W;  // in q; in dy, y
    const auto key = [&](Index s) { return ((b * T + s) * d_.K + kv) * E; };
    const auto value = [&](Index s) { return ((b * T + s) * d_.K + kv) * W; };
    const auto gradient = [&](Index s, Index first) { return (b * T + s) * d_.columns() + first; };
    const double scale = d_.form.score_factor / std::sqrt(static_cast<double>(E)), n = static_cast<double>(T),
                 e = static_cast<double>(std::max(E, W));
    std::vector<double> score(static_cast<std::size_t>(T)), upstream(score);
    double score_error = 0, largest = 0;
    for (Index s = 0; s <= t; ++s) {
      if (!visible(b, t, s)) continue;
      double sum = 0, sizes = 0, above = 0;
      for (Index i = 0; i < E; ++i) {
        const double product = scale * q_[query + i] * k_[key(s) + i];
        sum += product, sizes += std::abs(product);
      }
      for (Index i = 0; i < W; ++i) above += std::abs(dy_[out + i] * v_[value(s) + i]);
      score[s] = sum, upstream[s] = above;
      score_error = std::max(score_error, rounding_.gamma(e + 3) * sizes);
      largest = std::max(largest, std::abs(sum));
    }
    const double lse = truth_.lse(b, h, t);
    const double exponent = score_error + rounding_.gamma(4) * (2 * largest + std::abs(lse));
    const double of_lse = lse_error(rounding_, score_error, largest, lse, n, handed_ > 0);
    lse_(b, h, t) = of_lse;
    const double relative = std::expm1(
        2 * exponent + of_lse + rounding_.gamma(n + 4 + rounding_.exponential) + (handed_ > 0 ? 0x1p-21 : 0));

    double delta = 0;  // sum over s of p * sum of |dy v|
    for (Index s = 0; s <= t; ++s)
      if (visible(b, t, s)) delta += std::exp(score[s] - lse) * upstream[s];
    const std::int64_t group = d_.H / d_.K;
    const double rows = n * static_cast<double>(group);  // terms of dk and dv
    const double dscore_error = 2 * relative + rounding_.gamma(n + e + 8) + 3 * handed_;
    const double of_y = relative + rounding_.gamma(n) + handed_, of_dq = dscore_error + rounding_.gamma(n),
                 of_dk = dscore_error + rounding_.gamma(rows) + handed_,
                 of_dv = relative + rounding_.gamma(rows) + 2 * handed_;
    for (Index s = 0; s <= t; ++s) {
      if (!visible(b, t, s)) continue;
      const double p = std::exp(score[s] - lse) + rounding_.smallest;
      const double dscore = p * scale * (upstream[s] + delta);
      const Index dq = gradient(t, h * E), dk = gradient(s, (d_.H + kv) * E),
                  dv = gradient(s, (d_.H + d_.K) * E + kv * W);
      for (Index i = 0; i < E; ++i) {
        dqkv_[dq + i] += of_dq * dscore * std::abs(k_[key(s) + i]);
        dqkv_[dk + i] += of_dk * dscore * std::abs(q_[query + i]);
      }
      for (Index i = 0; i < W; ++i) {
        y_[out + i] += of_y * p * std::abs(v_[value(s) + i]);
        dqkv_[dv + i] += of_dv * p * std::abs(dy_[out + i]);
      }
    }
  }

  const AttentionDrawn& d_;
  tests::Rounding rounding_;
  double handed_;
  reference::attention::Forward<double> truth_;
  reference::Tensor<double> q_, k_, v_, dy_, y_, lse_, dqkv_;
};

/// q, k and v side by side as in the trainer's qkv: [B, T, heads, E], or, `by_token`, [B, T, entries].
inline reference::Tensor<double> qkv_of(const reference::attention::Backward<double>& gradient,
                                        bool by_token = false) {
  const auto tensor = [&](const reference::Tensor<double>& from) {
    const at::Tensor heads = tests::rounded(from, at::kDouble);
    return by_token ? heads.flatten(2) : heads;
  };
  return exact(at::cat({tensor(gradient.dq), tensor(gradient.dk), tensor(gradient.dv)}, 2));
}

/// Gradients [B, T, heads, E] of what q and k were before rope, and of v, as the trainer takes them.
inline at::Tensor turned_back(const attention::Gradients& d, const rope::Table& table,
                              const at::Tensor& positions) {
  if (!d.joined.defined()) return rope::joined_backward(d.dq, d.dk, d.dv, table, positions);
  rope::rotate(d.joined, d.dq.size(2) + d.dk.size(2), table, positions, /*inverse=*/true);
  return d.joined;
}

/// Forward and backward of drawn heads against the reference. `backend`: which computes them.
inline void attention_matches_reference(const AttentionDrawn& d,
                                        std::optional<attention::Backend> backend = {}) {
  const at::Device device = d.device;
  const auto q = exact(d.q(d.qkv)), k = exact(d.k(d.qkv)), v = exact(d.v(d.qkv));
  const double factor = d.form.score_factor;
  const auto expected = reference::attention::forward(q, k, v, d.mask_of_spec(), factor);
  const auto gradient =
      qkv_of(reference::attention::backward(exact(d.dy), q, k, v, expected, d.mask_of_spec(), factor),
             /*by_token=*/d.formed);
  const AttentionBounds bounds(d, expected);
  const at::Tensor qkv = d.qkv.to(device), dy = d.dy.to(device);
  const attention::Mask mask = d.mask();
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const attention::Heads heads(qkv, d.H, d.K, d.form);
    const auto out =
        generic ? attention::aten::forward(heads, mask) : attention::forward(heads, mask, d.form.backend);
    RC_ASSERT(!backend || out.backend == *backend);
    RC_ASSERT(out.y.scalar_type() == d.type && out.lse.scalar_type() == tests::math_of(d.type));
    ASSAY_RC_CLOSE(values(out.y), values(expected.y), bounds.y());
    ASSAY_RC_CLOSE(values(out.lse), values(expected.lse), bounds.lse());
    const at::Tensor dqkv = (generic ? attention::aten::backward(dy, heads, out, mask)
                                     : attention::backward(dy, heads, out, mask))
                                .together()
                                .view(qkv.sizes());
    ASSAY_RC_CLOSE(values(dqkv), values(gradient), bounds.dqkv(gradient));
  }
}

/// Queries [begin, end) of a drawn sequence among all its keys, in heads that stand apart: y and dq are the
/// whole sequence's, dk and dv those of a dy that is zero for all other queries.
inline void attention_of_a_span_matches_reference(AttentionDrawn d) {
  const Index begin = *rc::gen::inRange<Index>(0, d.T), end = *rc::gen::inRange(begin + 1, d.T + 1);
  d.dy.narrow(1, 0, begin).zero_();
  d.dy.narrow(1, end, d.T - end).zero_();
  const auto q = exact(d.q(d.qkv)), k = exact(d.k(d.qkv)), v = exact(d.v(d.qkv));
  const double factor = d.form.score_factor;
  const auto expected = reference::attention::forward(q, k, v, d.mask_of_spec(), factor);
  const auto gradient = qkv_of(
      reference::attention::backward(exact(d.dy), q, k, v, expected, d.mask_of_spec(), factor), d.formed);
  const AttentionBounds bounds(d, expected);
  const auto queries = [&](const at::Tensor& x) { return x.narrow(1, begin, end - begin).contiguous(); };
  const at::Tensor qkv = d.qkv.to(d.device);
  const attention::Heads heads(queries(d.q(qkv)), d.k(qkv).clone(), d.v(qkv), factor);
  const at::Tensor dy = queries(d.dy.to(d.device));
  attention::Mask mask = d.mask();
  mask.first = begin;
  const auto out = attention::forward(heads, mask, d.form.backend);
  const auto part = attention::backward(dy, heads, out, mask);
  // In the place of the whole sequence's: queries that are not asked are as expected.
  at::Tensor y = tests::rounded(expected.y, at::kDouble), dqkv = tests::rounded(gradient, at::kDouble);
  y.narrow(1, begin, end - begin).copy_(out.y);
  d.q(dqkv).narrow(1, begin, end - begin).copy_(part.dq);
  d.k(dqkv).copy_(part.dk);
  d.v(dqkv).copy_(part.dv);
  ASSAY_RC_CLOSE(values(y), values(expected.y), bounds.y());
  // Keys that no asked query sees have no gradient.
  const auto near =
      tests::close(values(dqkv), values(gradient), bounds.dqkv(gradient), /*zeros_expected=*/true);
  if (!near) RC_FAIL(std::string(near.message()));
}

/// Largest error over the largest entry of `want`.
inline double share_of_largest(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want.to(at::kDouble)).abs().max() / want.abs().max()).item<double>();
}

/// Frobenius norm of the error over that of `want`.
inline double relative_norm(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want.to(at::kDouble)).norm() / want.norm()).item<double>();
}

/// Of relative_norm for a gradient of drawn normal numbers in bf16: roundings of a probability, y, dscore,
/// delta, a head's part and the sum, each of at most u of its term. Terms of drawn numbers have signs of
/// their own and so have their errors: both sums grow as the root of their number, which leaves 6 u. A
/// gradient that is zero is off by 1, one that is halved by 0.5.
constexpr double gradient_norm_bound = 6 * unit_roundoff(Dtype::bf16);

inline void attention_matches_reference(at::Device device) {
  attention_matches_reference(AttentionDrawn(tests::draw_dtype(), device));
}
inline void attention_of_a_span_matches_reference(at::Device device) {
  attention_of_a_span_matches_reference(AttentionDrawn(tests::draw_dtype(), device));
}

}  // namespace assay::impl::parity
