// labels: unit property golden
#include "reference/ops/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/ops/attention/attention.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::attention_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

/// One case: every head ratio, one token, one head, odd sizes; documents of one token and none at all;
/// windows of one token, of some, of all and none; value heads as wide as key heads, wider and narrower.
struct Case {
  spec::attention::Shape shape;
  Ids documents;
  Index window;
  double factor;
  Tensor<double> q, k, v, dy;
  Index first = 0;
  spec::attention::Mask mask() const { return {documents, window, first}; }
};

Ids draw_documents(Index B, Index T) {
  if (*rc::gen::inRange(0, 3) == 0) return {};
  Ids documents;
  for (Index n = 0; n < B * T; ++n)
    documents.push_back(n % T == 0 ? *rc::gen::inRange(0, 3) : documents.back() + *rc::gen::inRange(0, 2));
  return documents;
}

Case draw_case(Index most_tokens = 6) {
  const Index B = *rc::gen::inRange(1, 3), T = *rc::gen::inRange<Index>(1, most_tokens + 1);
  const Index K = *rc::gen::inRange(1, 4), H = K * *rc::gen::inRange(1, 4), E = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Index window = *rc::gen::inRange<Index>(0, T + 2), W = *rc::gen::inRange<Index>(1, 7);
  return {{.B = B, .T = T, .H = H, .K = K, .E = E, .W = W},
          draw_documents(B, T),
          window,
          *rc::gen::element(1.0, 1.75),
          tests::normal({B, T, H, E}, seed),
          tests::normal({B, T, K, E}, seed + 1),
          tests::normal({B, T, K, W}, seed + 2),
          tests::normal({B, T, H, W}, seed + 3)};
}

attention::Backward<double> gradient_of(const Case& c) {
  const auto out = attention::forward(c.q, c.k, c.v, c.mask(), c.factor);
  return attention::backward(c.dy, c.q, c.k, c.v, out, c.mask(), c.factor);
}

/// Entries [begin, end) of axis 1.
Tensor<double> tokens(const Tensor<double>& x, Index begin, Index end) {
  Tensor<double> part({x.extent(0), end - begin, x.extent(2), x.extent(3)});
  for (Index b = 0; b < x.extent(0); ++b)
    for (Index t = begin; t < end; ++t)
      for (Index h = 0; h < x.extent(2); ++h)
        for (Index e = 0; e < x.extent(3); ++e) part(b, t - begin, h, e) = x(b, t, h, e);
  return part;
}

class AttentionExample : public testing::Test {
 protected:
  const double ln3 = std::log(3.0), ln4 = std::log(4.0);
  const Tensor<double> q{{1, 2, 1, 1}, {1, 1}}, k{{1, 2, 1, 1}, {0, ln3}}, v{{1, 2, 1, 1}, {4, 8}};
  const Tensor<double> dy{{1, 2, 1, 1}, {0, 1}};
  static tests::Values row(double a, double b) { return {{1, 2, 1, 1}, {a, b}}; }
};

TEST_F(AttentionExample, OfTheSpecIsGiven) {
  const auto out = attention::forward(q, k, v, {});
  // First-order errors of token 1 in units of u, exp and log within one ulp (2); token 0 is exact. The double
  // ln3 is off by 2 relative, 2.2 absolute. Weights 1/3 and 1: the first has 2.2 + 2 relative. Sum 4/3: 1.05
  // + 1 relative. y: 28/3 has 0.6 + 1, divided by the sum 4.7 relative, 33 absolute.
  ASSAY_EXPECT_CLOSE(values(out.y), row(4, 7), Allowed::relative(gamma(5, u)));
  // lse: ln3 2.2, the sum's 2.1, log(4/3) 0.6, addition 1.4: 6.3 absolute; 2.8 more for the expected ln4.
  ASSAY_EXPECT_CLOSE(values(out.lse), (tests::Values{{1, 1, 2}, {0, ln4}}),
                     Allowed::elementwise({0, gamma(10, u)}));
  const auto gradient = attention::backward(dy, q, k, v, out, {});
  // p = (1/4, 3/4): lse 6.3, for the second ln3 2.2, exp 2: 8.3 and 10.5 relative.
  ASSAY_EXPECT_CLOSE(values(gradient.dv), row(0.25, 0.75),
                     Allowed::elementwise({gamma(9, u) / 4, gamma(11, u) * 0.75}));
  // dp - delta = (-3, 1): 33 absolute for delta and the subtraction's rounding: 12 and 34 relative. dscore:
  // that, p's and the product's 1: 21.3 and 45.5 relative, of 3/4.
  ASSAY_EXPECT_CLOSE(values(gradient.dk), row(-0.75, 0.75),
                     Allowed::elementwise({gamma(22, u) * 0.75, gamma(46, u) * 0.75}));
  // The product with ln3, here and in the expected number: 1 each.
  ASSAY_EXPECT_CLOSE(values(gradient.dq), row(0, 0.75 * ln3),
                     Allowed::elementwise({0, gamma(48, u) * 0.75 * ln3}));
}

TEST_F(AttentionExample, OfTheSpecWithTwoDocumentsIsGiven) {
  const Ids apart = {0, 1};
  const auto out = attention::forward(q, k, v, {apart});
  ASSAY_EXPECT_CLOSE(values(out.y), row(4, 8), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(out.lse), (tests::Values{{1, 1, 2}, {0, ln3}}), Allowed::exact());
  const auto gradient = attention::backward(dy, q, k, v, out, {apart});
  ASSAY_EXPECT_CLOSE(values(gradient.dq), row(0, 0), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dk), row(0, 0), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dv), row(0, 1), Allowed::exact());
}

TEST_F(AttentionExample, OfTheSpecWithAWindowOfOneTokenIsGiven) {
  const auto out = attention::forward(q, k, v, {.window = 1});
  ASSAY_EXPECT_CLOSE(values(out.y), row(4, 8), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(out.lse), (tests::Values{{1, 1, 2}, {0, ln3}}), Allowed::exact());
  const auto gradient = attention::backward(dy, q, k, v, out, {.window = 1});
  ASSAY_EXPECT_CLOSE(values(gradient.dq), row(0, 0), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dk), row(0, 0), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(gradient.dv), row(0, 1), Allowed::exact());
}

TEST(AttentionReference, MatchesTorchFloat64) {
  for (const char* name :
       {"one_document", "gqa_documents", "mqa_odd", "one_token", "window", "window_documents"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/attention/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto q = tensor("q"), k = tensor("k"), v = tensor("v");
    const Ids documents = golden.ids("documents");
    const spec::attention::Mask mask{
        documents, golden.scalars.contains("window") ? static_cast<Index>(golden.scalar("window")) : 0};
    const auto out = attention::forward(q, k, v, mask);
    const auto gradient = attention::backward(tensor("dout"), q, k, v, out, mask);
    ASSAY_EXPECT_CLOSE(values(out.y), golden.tensor("out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.lse), golden.tensor("logsumexp"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dv), golden.tensor("dv"), Allowed::relative(1e-10));
    // One token alone has no gradient in q and k; its dp - delta is then zero up to the rounding of dv's
    // size.
    std::vector<double> bound_q(gradient.dq.size(), 1e-10 * gradient.dv.flat().abs().maxCoeff());
    std::vector<double> bound_k(gradient.dk.size(), bound_q[0]);
    EXPECT_TRUE(tests::close(values(gradient.dq), golden.tensor("dq"), Allowed::elementwise(bound_q), true));
    EXPECT_TRUE(tests::close(values(gradient.dk), golden.tensor("dk"), Allowed::elementwise(bound_k), true));
  }
}

TEST(AttentionReference, C1RejectsAnotherShape) {
  const auto q = tests::normal({1, 2, 2, 4}, 1), k = tests::normal({1, 2, 1, 4}, 2),
             longer = tests::normal({1, 3, 1, 4}, 3);
  const auto lse = tests::normal({1, 2, 2}, 4), wrong_lse = tests::normal({1, 2, 3}, 5);
  using Saved = attention::Forward<double>;
  EXPECT_THROW(attention::forward(q, k, longer, {}), SpecError);
  EXPECT_THROW(attention::forward(q, longer, k, {}), SpecError);
  EXPECT_THROW(attention::backward(k, q, k, k, Saved{q, lse}, {}), SpecError);
  EXPECT_THROW(attention::backward(q, q, k, k, Saved{k, lse}, {}), SpecError);
  EXPECT_THROW(attention::backward(q, q, k, k, Saved{q, wrong_lse}, {}), SpecError);
}

TEST(AttentionReference, C2RejectsKeyHeadsThatDoNotDivide) {
  EXPECT_THROW(attention::forward(tests::normal({1, 2, 3, 4}, 1), tests::normal({1, 2, 2, 4}, 2),
                                  tests::normal({1, 2, 2, 4}, 3), {}),
               SpecError);
}

TEST(AttentionReference, C3RejectsAnotherNumberOfDocuments) {
  const auto q = tests::normal({1, 2, 1, 4}, 1);
  EXPECT_THROW(attention::forward(q, q, q, {Ids{0, 0, 0}}), SpecError);
}

TEST(AttentionReference, C4RejectsADocumentThatComesBack) {
  const auto q = tests::normal({1, 3, 1, 4}, 1);
  EXPECT_THROW(attention::forward(q, q, q, {Ids{0, 1, 0}}), SpecError);
}

TEST(AttentionReference, C5RejectsEmptyHeads) {
  const Tensor<double> q({1, 2, 1, 0});
  EXPECT_THROW(attention::forward(q, q, q, {}), SpecError);
}

TEST(AttentionReference, C6RejectsANegativeWindow) {
  const auto q = tests::normal({1, 2, 1, 4}, 1);
  EXPECT_THROW(attention::forward(q, q, q, {.window = -1}), SpecError);
}

TEST(AttentionReference, HugeScoresDoNotOverflow) {
  const Tensor<double> q({1, 2, 1, 1}, {1000, 1000}), k({1, 2, 1, 1}, {1, 2}), v({1, 2, 1, 1}, {3, 5});
  const auto out = attention::forward(q, k, v, {});
  ASSAY_EXPECT_CLOSE(values(out.y), (tests::Values{{1, 2, 1, 1}, {3, 5}}), Allowed::exact());
  ASSAY_EXPECT_CLOSE(values(out.lse), (tests::Values{{1, 1, 2}, {1000, 2000}}), Allowed::exact());
}

/// Queries that are some of a sequence's tokens, or come behind it; keys and documents are all of it.
Case draw_span(Index most_tokens = 6) {
  Case c = draw_case(most_tokens);
  const Index S = c.shape.T;
  c.shape.S = S;
  c.first = *rc::gen::inRange<Index>(0, 2 * S);
  const bool behind = c.first >= S;
  c.shape.T = *rc::gen::inRange<Index>(1, behind ? 4 : S - c.first + 1);
  if (behind) c.documents.clear(), c.window += c.window > 0 ? c.first + c.shape.T - S : 0;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  c.q = tests::normal({c.shape.B, c.shape.T, c.shape.H, c.shape.E}, seed);
  c.dy = tests::normal({c.shape.B, c.shape.T, c.shape.H, c.shape.W}, seed + 1);
  return c;
}

/// Queries [begin, end) of a sequence have y and dq of the whole, and dk and dv of the whole with an upstream
/// gradient of those queries alone, bit for bit.
RC_GTEST_PROP(AttentionReference, SpansAreTheWholeInParts, ()) {
  const Case c = draw_case();
  const Index T = c.shape.T, begin = *rc::gen::inRange<Index>(0, T),
              end = *rc::gen::inRange(begin + 1, T + 1);
  Case part = c, masked = c;
  part.first = begin;
  part.q = tokens(c.q, begin, end), part.dy = tokens(c.dy, begin, end);
  for (Index b = 0; b < c.shape.B; ++b)
    for (Index t = 0; t < T; ++t)
      for (Index h = 0; h < c.shape.H; ++h)
        for (Index w = 0; w < c.shape.W; ++w) masked.dy(b, t, h, w) *= t >= begin && t < end;
  const auto same = [](const Tensor<double>& a, const Tensor<double>& b) {
    return (a.flat() == b.flat()).all();
  };
  const auto y = attention::forward(c.q, c.k, c.v, c.mask(), c.factor).y;
  RC_ASSERT(same(attention::forward(part.q, c.k, c.v, part.mask(), c.factor).y, tokens(y, begin, end)));
  const auto whole = gradient_of(masked), of_part = gradient_of(part);
  RC_ASSERT(same(of_part.dq, tokens(whole.dq, begin, end)));
  RC_ASSERT(same(of_part.dk, whole.dk) && same(of_part.dv, whole.dv));
}

RC_GTEST_PROP(AttentionReference, BackwardMatchesCentralDifference, ()) {
  const Case c = *rc::gen::arbitrary<bool>() ? draw_case(4) : draw_span(4);
  const auto gradient = gradient_of(c);
  const auto loss = [&](const auto& q, const auto& k, const auto& v) {
    return tests::dot(c.dy, attention::forward(q, k, v, c.mask(), c.factor).y);
  };
  const auto by_q = [&](const auto& moved) { return loss(moved, c.k, c.v); };
  const auto by_k = [&](const auto& moved) { return loss(c.q, moved, c.v); };
  const auto by_v = [&](const auto& moved) { return loss(c.q, c.k, moved); };
  // Documents of one token have no gradient in q and k: the bound is that of the op's, not of each tensor's,
  // scale.
  const double largest = std::max({gradient.dq.flat().abs().maxCoeff(), gradient.dk.flat().abs().maxCoeff(),
                                   gradient.dv.flat().abs().maxCoeff()});
  const auto agree = [&](const Tensor<double>& actual, const tests::Values& expected) {
    const std::vector<double> bound(expected.data.size(), 1e-7 * largest);
    const auto result =
        tests::close(values(actual), expected, Allowed::elementwise(bound), /*zeros_expected=*/true);
    if (!result) RC_FAIL(std::string(result.message()));
  };
  agree(gradient.dq, tests::central_difference(by_q, c.q));
  agree(gradient.dk, tests::central_difference(by_k, c.k));
  agree(gradient.dv, tests::central_difference(by_v, c.v));
}

RC_GTEST_PROP(AttentionReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Case c = *rc::gen::arbitrary<bool>() ? draw_case() : draw_span();
  const auto q = tests::counted(c.q), k = tests::counted(c.k), v = tests::counted(c.v),
             dy = tests::counted(c.dy);
  attention::Forward<Counted> out;
  const Count forward = tests::operations_of([&] { out = attention::forward(q, k, v, c.mask(), c.factor); });
  const Count backward =
      tests::operations_of([&] { attention::backward(dy, q, k, v, out, c.mask(), c.factor); });
  const Flops model = spec::attention::forward_flops(c.shape, c.mask());
  const Flops executed = spec::attention::backward_flops(c.shape, c.mask()) +
                         spec::attention::recomputed_flops(c.shape, c.mask());
  RC_ASSERT(forward == model.matmul + model.vector);
  RC_ASSERT(backward == executed.matmul + executed.vector);
}

RC_GTEST_PROP(AttentionReference, TheFactorScalesTheScores, ()) {
  // Twice the factor is twice the queries: a power of two rounds nothing.
  Case c = draw_case();
  const auto before = attention::forward(c.q, c.k, c.v, c.mask(), 2 * c.factor);
  c.q.flat() *= 2;
  const auto after = attention::forward(c.q, c.k, c.v, c.mask(), c.factor);
  RC_ASSERT((before.y.flat() == after.y.flat()).all());
  RC_ASSERT((before.lse.flat() == after.lse.flat()).all());
}

RC_GTEST_PROP(AttentionReference, ChangingALaterTokenChangesNoEarlierOutput, ()) {
  const Case c = draw_case();
  const Index changed = *rc::gen::inRange<Index>(0, c.shape.T);
  Case moved = c;
  for (Index e = 0; e < c.shape.E; ++e) moved.k(0, changed, 0, e) += 1;
  for (Index w = 0; w < c.shape.W; ++w) moved.v(0, changed, 0, w) -= 1;
  const auto before = attention::forward(c.q, c.k, c.v, c.mask());
  const auto after = attention::forward(moved.q, moved.k, moved.v, c.mask());
  RC_ASSERT((tokens(before.y, 0, changed).flat() == tokens(after.y, 0, changed).flat()).all());
  RC_ASSERT(tokens(before.y, changed, changed + 1)(0, 0, 0, 0) !=
            tokens(after.y, changed, changed + 1)(0, 0, 0, 0));
}

RC_GTEST_PROP(AttentionReference, DocumentsAreIndependentOfEachOther, ()) {
  // A packed sequence of two documents equals the two on their own, bit for bit, forward and backward.
  Case c = draw_case();
  const Index T = c.shape.T + 1, cut = *rc::gen::inRange<Index>(1, T), B = c.shape.B;
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  c.q = tests::normal({B, T, c.shape.H, c.shape.E}, seed);
  c.dy = tests::normal({B, T, c.shape.H, c.shape.W}, seed + 1);
  c.k = tests::normal({B, T, c.shape.K, c.shape.E}, seed + 2);
  c.v = tests::normal({B, T, c.shape.K, c.shape.W}, seed + 3);
  c.documents.clear();
  for (Index n = 0; n < B * T; ++n) c.documents.push_back(n % T < cut ? 4 : 9);
  const auto y = attention::forward(c.q, c.k, c.v, c.mask(), c.factor).y;
  const auto packed = gradient_of(c);
  for (const auto& [begin, end] : {std::pair{Index{0}, cut}, std::pair{cut, T}}) {
    const Case alone{c.shape,
                     {},
                     c.window,
                     c.factor,
                     tokens(c.q, begin, end),
                     tokens(c.k, begin, end),
                     tokens(c.v, begin, end),
                     tokens(c.dy, begin, end)};
    RC_ASSERT((attention::forward(alone.q, alone.k, alone.v, alone.mask(), c.factor).y.flat() ==
               tokens(y, begin, end).flat())
                  .all());
    const auto gradient = gradient_of(alone);
    RC_ASSERT((gradient.dq.flat() == tokens(packed.dq, begin, end).flat()).all());
    RC_ASSERT((gradient.dk.flat() == tokens(packed.dk, begin, end).flat()).all());
    RC_ASSERT((gradient.dv.flat() == tokens(packed.dv, begin, end).flat()).all());
  }
}

RC_GTEST_PROP(AttentionReference, ProbabilitiesOfEveryRowSumToOne, ()) {
  // With v = 1 each output is the sum of its probabilities, and with dy = 1 dv counts how much each token is
  // read.
  Case c = draw_case();
  c.v.flat().setOnes();
  c.dy.flat().setOnes();
  const auto y = attention::forward(c.q, c.k, c.v, c.mask(), c.factor).y;
  RC_ASSERT((y.flat() == 1).all());  // the same sum above and below the division
  const double rows = static_cast<double>(y.size()), T = static_cast<double>(c.shape.T);
  // A recomputed probability exp(score - lse) has, in units of u, with |score| <= S and at most T tokens: in
  // lse, the rounding of score - max 2 S, exp 2, the sum T - 1, log 2 log T, the addition S + log T; then the
  // subtraction 2 S + log T and exp 2. The computed scores are the same on both sides, so their own errors
  // cancel. Up to `rows` probabilities meet in an entry of dv, and fewer than `rows` entries in the sum over
  // them.
  const double S = c.factor * c.q.flat().abs().maxCoeff() * c.k.flat().abs().maxCoeff() *
                   std::sqrt(static_cast<double>(c.shape.E));
  RC_ASSERT(std::abs(gradient_of(c).dv.flat().sum() - rows) <=
            rows * gamma(2 * rows + T + 3 + 4 * std::log(T) + 5 * S, u));
}

RC_GTEST_PROP(AttentionReference, AMovedSequenceGivesTheSameRows, ()) {
  Case c = draw_case();
  c.documents.clear();
  const auto swap = [](const Tensor<double>& x) {
    Tensor<double> reversed(x.shape());
    const Index B = x.extent(0), block = x.size() / B;
    for (Index b = 0; b < B; ++b)
      reversed.flat().segment(b * block, block) = x.flat().segment((B - 1 - b) * block, block);
    return reversed;
  };
  const auto y = attention::forward(c.q, c.k, c.v, {}).y;
  RC_ASSERT((attention::forward(swap(c.q), swap(c.k), swap(c.v), {}).y.flat() == swap(y).flat()).all());
}

RC_GTEST_PROP(AttentionReference, GroupedHeadsEqualRepeatedKeys, ()) {
  const Case c = draw_case();
  const Index group = c.shape.H / c.shape.K;
  const auto repeat = [&](const Tensor<double>& x) {
    Tensor<double> all({c.shape.B, c.shape.T, c.shape.H, x.extent(3)});
    for (Index b = 0; b < c.shape.B; ++b)
      for (Index t = 0; t < c.shape.T; ++t)
        for (Index h = 0; h < c.shape.H; ++h)
          for (Index e = 0; e < x.extent(3); ++e) all(b, t, h, e) = x(b, t, h / group, e);
    return all;
  };
  const auto grouped = attention::forward(c.q, c.k, c.v, c.mask());
  const auto repeated = attention::forward(c.q, repeat(c.k), repeat(c.v), c.mask());
  RC_ASSERT((grouped.y.flat() == repeated.y.flat()).all());
  RC_ASSERT((grouped.lse.flat() == repeated.lse.flat()).all());
}

}  // namespace
}  // namespace assay::reference::attention_test
