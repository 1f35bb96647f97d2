// labels: unit property golden
#include "reference/ops/qk_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/ops/qk_norm/qk_norm.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::qk_norm_test {
namespace {

using tests::Allowed;
using tests::values;

constexpr double eps = 0.1;  // large enough that its position in the gradient matters

struct Case {
  spec::qk_norm::Shape shape;
  Tensor<double> q, k, q_gain, k_gain, dq_out, dk_out;
};

Case draw_case() {
  const Index B = *rc::gen::inRange(1, 3), T = *rc::gen::inRange(1, 3), K = *rc::gen::inRange(1, 3);
  const Index H = K * *rc::gen::inRange(1, 4), E = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const spec::qk_norm::Shape shape{
      .B = B, .T = T, .H = H, .K = K, .E = E, .across_heads = *rc::gen::arbitrary<bool>()};
  return {shape,
          tests::normal({B, T, H, E}, seed),
          tests::normal({B, T, K, E}, seed + 1),
          tests::normal({H / shape.query_rows() * E}, seed + 2),
          tests::normal({K / shape.key_rows() * E}, seed + 3),
          tests::normal({B, T, H, E}, seed + 4),
          tests::normal({B, T, K, E}, seed + 5)};
}

TEST(QkNormReference, ForwardGivesTheSpecExample) {
  const Tensor<double> q({1, 1, 1, 2}, {3, 4}), k({1, 1, 1, 2}, {6, 8}), q_gain({2}, {1, 2}),
      k_gain({2}, {1, 1});
  const auto out = qk_norm::forward(q, k, q_gain, k_gain, 0.5);
  const auto bound = Allowed::relative(gamma(9, unit_roundoff(Dtype::f64)));
  ASSAY_EXPECT_CLOSE(values(out.q), (tests::Values{{1, 1, 1, 2}, {3 / std::sqrt(13.0), 8 / std::sqrt(13.0)}}),
                     bound);
  ASSAY_EXPECT_CLOSE(values(out.k), (tests::Values{{1, 1, 1, 2}, {6 / std::sqrt(50.5), 8 / std::sqrt(50.5)}}),
                     bound);
}

TEST(QkNormReference, ForwardAcrossHeadsGivesTheSpecExample) {
  const Tensor<double> q({1, 1, 2, 2}, {3, 4, 5, 7}), k({1, 1, 1, 2}, {6, 8}), q_gain({4}, {1, 2, 1, 2}),
      k_gain({2}, {1, 1});
  const auto out = qk_norm::forward(q, k, q_gain, k_gain, 0.5);
  const double root = std::sqrt(25.25);
  ASSAY_EXPECT_CLOSE(values(out.q), (tests::Values{{1, 1, 2, 2}, {3 / root, 8 / root, 5 / root, 14 / root}}),
                     Allowed::relative(gamma(11, unit_roundoff(Dtype::f64))));
  EXPECT_EQ(out.q_rstd.size(), 1);
}

TEST(QkNormReference, MatchesTorchFloat64) {
  for (const char* name : {"gqa", "one_head", "across_heads"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/qk_norm/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto q = tensor("q"), k = tensor("k"), q_gain = tensor("q_gain"), k_gain = tensor("k_gain");
    const auto out = qk_norm::forward(q, k, q_gain, k_gain, golden.scalar("eps"));
    const auto gradient = qk_norm::backward(tensor("dq_out"), tensor("dk_out"), q, k, q_gain, k_gain, out);
    ASSAY_EXPECT_CLOSE(values(out.q), golden.tensor("q_out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.k), golden.tensor("k_out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dq), golden.tensor("dq"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dk), golden.tensor("dk"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dq_gain), golden.tensor("dq_gain"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dk_gain), golden.tensor("dk_gain"), Allowed::relative(1e-10));
  }
}

TEST(QkNormReference, C1RejectsAGainOfAnotherSize) {
  const auto q = tests::normal({1, 2, 2, 4}, 1), k = tests::normal({1, 2, 1, 4}, 2);
  const auto gain = tests::normal({4}, 3), longer = tests::normal({8}, 4);
  EXPECT_THROW(qk_norm::forward(q, k, gain, longer, eps), SpecError);
  EXPECT_THROW(qk_norm::forward(q, k, longer, longer, eps), SpecError);
  EXPECT_NO_THROW(qk_norm::forward(q, k, longer, gain, eps));  // two query heads and one key head at once
}

TEST(QkNormReference, C2RejectsQueriesAndKeysOfDifferentTokens) {
  const auto q = tests::normal({1, 2, 2, 4}, 1), k = tests::normal({1, 3, 1, 4}, 2),
             gain = tests::normal({4}, 3);
  EXPECT_THROW(qk_norm::forward(q, k, gain, gain, eps), SpecError);
  EXPECT_THROW(qk_norm::backward(k, q, q, q, gain, gain, qk_norm::forward(q, q, gain, gain, eps)), SpecError);
}

TEST(QkNormReference, C3RejectsAnEpsThatIsNotPositive) {
  const auto q = tests::normal({1, 2, 2, 4}, 1), gain = tests::normal({4}, 3);
  EXPECT_THROW(qk_norm::forward(q, q, gain, gain, 0), SpecError);
}

TEST(QkNormReference, C4RejectsEmptyHeads) {
  const Tensor<double> q({1, 2, 2, 0}), gain({0});
  EXPECT_THROW(qk_norm::forward(q, q, gain, gain, eps), SpecError);
}

RC_GTEST_PROP(QkNormReference, BackwardMatchesCentralDifference, ()) {
  const Case c = draw_case();
  const auto gradient = qk_norm::backward(c.dq_out, c.dk_out, c.q, c.k, c.q_gain, c.k_gain,
                                          qk_norm::forward(c.q, c.k, c.q_gain, c.k_gain, eps));
  const auto loss = [&](const auto& q, const auto& k, const auto& q_gain, const auto& k_gain) {
    const auto out = qk_norm::forward(q, k, q_gain, k_gain, eps);
    return tests::dot(c.dq_out, out.q) + tests::dot(c.dk_out, out.k);
  };
  const auto by_q = [&](const auto& moved) { return loss(moved, c.k, c.q_gain, c.k_gain); };
  const auto by_k = [&](const auto& moved) { return loss(c.q, moved, c.q_gain, c.k_gain); };
  const auto by_q_gain = [&](const auto& moved) { return loss(c.q, c.k, moved, c.k_gain); };
  const auto by_k_gain = [&](const auto& moved) { return loss(c.q, c.k, c.q_gain, moved); };
  ASSAY_RC_CLOSE(values(gradient.dq), tests::central_difference(by_q, c.q), Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dk), tests::central_difference(by_k, c.k), Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dq_gain), tests::central_difference(by_q_gain, c.q_gain),
                 Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dk_gain), tests::central_difference(by_k_gain, c.k_gain),
                 Allowed::relative(1e-7));
}

RC_GTEST_PROP(QkNormReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Case c = draw_case();
  const auto q = tests::counted(c.q), k = tests::counted(c.k);
  const auto q_gain = tests::counted(c.q_gain), k_gain = tests::counted(c.k_gain);
  qk_norm::Forward<Counted> out;
  const Count forward = tests::operations_of([&] { out = qk_norm::forward(q, k, q_gain, k_gain, eps); });
  const Count backward = tests::operations_of([&] { qk_norm::backward(q, k, q, k, q_gain, k_gain, out); });
  RC_ASSERT(forward == spec::qk_norm::forward_flops(c.shape).vector);
  RC_ASSERT(backward == spec::qk_norm::backward_flops(c.shape).vector);
}

RC_GTEST_PROP(QkNormReference, EveryRowIsNormalisedOnItsOwn, ()) {
  // Scaling a row, a head or across heads a token's, changes no other one; scaling eps with its square leaves
  // the row itself, and 2 rounds nothing.
  const Case c = draw_case();
  Case scaled = c;
  const Index row = c.q_gain.size();
  scaled.q.flat().head(row) *= 2;
  const auto before = qk_norm::forward(c.q, c.k, c.q_gain, c.k_gain, eps);
  const auto after = qk_norm::forward(scaled.q, scaled.k, c.q_gain, c.k_gain, eps);
  const Index rest = c.q.size() - row;
  RC_ASSERT((before.q.flat().tail(rest) == after.q.flat().tail(rest)).all());
  RC_ASSERT((before.k.flat() == after.k.flat()).all());
  const auto rescaled = qk_norm::forward(scaled.q, scaled.k, c.q_gain, c.k_gain, 4 * eps);
  RC_ASSERT((before.q.flat().head(row) == rescaled.q.flat().head(row)).all());
}

RC_GTEST_PROP(QkNormReference, ScoresAreBoundedByTheGains, ()) {
  // |q_out| <= sqrt(entries of a row) max |q_gain| for every row, whatever q is: what qk_norm is for.
  Case c = draw_case();
  c.q.flat() *= 1e6;
  const auto out = qk_norm::forward(c.q, c.k, c.q_gain, c.k_gain, eps);
  const Index row = c.q_gain.size();
  const double limit = std::sqrt(static_cast<double>(row)) * c.q_gain.flat().abs().maxCoeff();
  for (Index n = 0; n < c.q.size(); n += row)
    RC_ASSERT(out.q.flat().segment(n, row).matrix().norm() <= limit * (1 + 1e-12));
}

}  // namespace
}  // namespace assay::reference::qk_norm_test
