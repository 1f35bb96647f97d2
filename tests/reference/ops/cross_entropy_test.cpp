// labels: unit property golden
#include "reference/ops/cross_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::cross_entropy_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

tests::Values scalar(double value) { return {{1}, {value}}; }

/// N targets below V, about one in four ignored.
Ids draw_targets(Index N, Index V) {
  const auto target = rc::gen::weightedOneOf<std::int64_t>(
      {{3, rc::gen::inRange<std::int64_t>(0, V)}, {1, rc::gen::just(spec::cross_entropy::ignore)}});
  return *rc::gen::container<Ids>(static_cast<std::size_t>(N), target);
}

TEST(CrossEntropyReference, GivesTheSpecExample) {
  const double ln2 = std::log(2.0), ln4 = std::log(4.0);
  const Tensor<double> logits({2, 2}, {0, std::log(3.0), 5, 7});
  const Ids targets{1, -100};
  const auto out = cross_entropy::forward(logits, targets, 2, 0.25);
  ASSAY_EXPECT_CLOSE(scalar(out.lse[0]), scalar(ln4), Allowed::relative(gamma(8, u)));
  // lse - logit loses what ln 4 and ln 3 share: 8 roundings of ln 4 are the bound, not of ln(4/3).
  ASSAY_EXPECT_CLOSE(scalar(out.cross_entropy), scalar(std::log(4.0 / 3) / 2),
                     Allowed::elementwise({gamma(8, u) * ln4}));
  ASSAY_EXPECT_CLOSE(scalar(out.z_loss), scalar(ln4 * ln4 / 8), Allowed::relative(gamma(20, u)));
  EXPECT_EQ(out.loss, out.cross_entropy + out.z_loss);
  EXPECT_EQ(out.valid, 1);
  const tests::Values expected{{2, 2}, {(1 + ln2) / 8, (3 * (1 + ln2) - 4) / 8, 0, 0}};
  ASSAY_EXPECT_CLOSE(values(cross_entropy::backward(1, logits, targets, out.lse, 2, 0.25)), expected,
                     Allowed::relative(gamma(32, u)));
}

TEST(CrossEntropyReference, MatchesTorchFloat64) {
  for (const char* name : {"mean", "ignored", "z_loss", "global_normaliser", "all_ignored"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/cross_entropy/") + name + ".json");
    const auto logits = tests::tensor(golden.tensor("logits"));
    const Ids targets = golden.ids("targets");
    const double normalizer = golden.scalar("normaliser"), z = golden.scalar("z_loss");
    const auto out = cross_entropy::forward(logits, targets, normalizer, z);
    const auto dlogits = cross_entropy::backward(1, logits, targets, out.lse, normalizer, z);
    EXPECT_EQ(static_cast<double>(out.valid), golden.scalar("valid"));
    ASSAY_EXPECT_CLOSE(scalar(out.loss), scalar(golden.scalar("loss")), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(scalar(out.cross_entropy * normalizer), scalar(golden.scalar("nll_sum")),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(scalar(out.z_loss * normalizer), scalar(golden.scalar("z_sum")),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.lse), golden.tensor("logsumexp"), Allowed::relative(1e-10));
    EXPECT_TRUE(tests::close(values(dlogits), golden.tensor("dlogits"), Allowed::relative(1e-10),
                             /*zeros_expected=*/out.valid == 0));
  }
}

TEST(CrossEntropyReference, C1RejectsAnotherNumberOfTargets) {
  EXPECT_THROW(cross_entropy::forward(tests::normal({2, 5}, 1), {0}, 2, 0), SpecError);
}

TEST(CrossEntropyReference, C2RejectsATargetOutsideTheVocabulary) {
  const auto logits = tests::normal({2, 5}, 1), lse = tests::normal({2}, 2);
  EXPECT_THROW(cross_entropy::forward(logits, {0, 5}, 2, 0), SpecError);
  EXPECT_THROW(cross_entropy::backward(1, logits, {0, 5}, lse, 2, 0), SpecError);
}

TEST(CrossEntropyReference, C3RejectsANormalizerThatIsNotPositive) {
  EXPECT_THROW(cross_entropy::forward(tests::normal({2, 5}, 1), {0, 4}, 0, 0), SpecError);
}

TEST(CrossEntropyReference, C4RejectsANegativeZLoss) {
  EXPECT_THROW(cross_entropy::forward(tests::normal({2, 5}, 1), {0, 4}, 2, -1), SpecError);
}

TEST(CrossEntropyReference, C5RejectsAnEmptyVocabulary) {
  EXPECT_THROW(cross_entropy::forward(Tensor<double>({2, 0}), {0, 0}, 2, 0), SpecError);
}

TEST(CrossEntropyReference, HugeLogitsDoNotOverflow) {
  const Tensor<double> logits({2, 2}, {1000, 0, -1000, -2000});
  const auto out = cross_entropy::forward(logits, {1, 0}, 1, 0);
  ASSAY_EXPECT_CLOSE(values(out.lse), (tests::Values{{2}, {1000, -1000}}), Allowed::exact());
  EXPECT_EQ(out.loss, 1000);
}

TEST(CrossEntropyReference, EqualLogitsCostTheLogOfTheVocabulary) {
  const auto out = cross_entropy::forward(Tensor<double>({3, 7}), {0, 3, 6}, 3, 0);
  ASSAY_EXPECT_CLOSE(scalar(out.loss), scalar(std::log(7.0)), Allowed::relative(gamma(7, u)));
}

TEST(CrossEntropyReference, ABatchOfIgnoredTargetsCostsNothing) {
  const auto logits = tests::normal({2, 5}, 1);
  const auto out = cross_entropy::forward(logits, {-100, -100}, 7, 1e-3);
  EXPECT_EQ(out.loss, 0);
  EXPECT_EQ(out.valid, 0);
  EXPECT_TRUE((cross_entropy::backward(1, logits, {-100, -100}, out.lse, 7, 1e-3).flat() == 0).all());
}

RC_GTEST_PROP(CrossEntropyReference, BackwardMatchesCentralDifference, ()) {
  const Index N = *rc::gen::inRange(1, 5), V = *rc::gen::inRange(1, 8);
  const Ids targets = draw_targets(N, V);
  const double z_loss = *rc::gen::element(0.0, 0.1), normalizer = 3;
  const auto logits = tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>());
  const auto lse = cross_entropy::forward(logits, targets, normalizer, z_loss).lse;
  const auto loss = [&](const auto& moved) {
    return 2 * cross_entropy::forward(moved, targets, normalizer, z_loss).loss;
  };
  const auto gradient = cross_entropy::backward(2, logits, targets, lse, normalizer, z_loss);
  // With V = 1 and z = 0 the loss is constant and the difference quotient only noise: 1e-7 of 2/Z, the
  // largest |d/Z|.
  const std::vector<double> bound(static_cast<std::size_t>(N * V), 1e-7 * 2 / normalizer);
  const auto result = tests::close(values(gradient), tests::central_difference(loss, logits),
                                   Allowed::elementwise(bound), /*zeros_expected=*/true);  // ignored rows
  if (!result) RC_FAIL(std::string(result.message()));
}

RC_GTEST_PROP(CrossEntropyReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index N = *rc::gen::inRange(0, 6), V = *rc::gen::inRange(1, 9);
  const Ids targets = draw_targets(N, V);
  const Index valid = spec::cross_entropy::count_valid(targets);
  const auto logits = tests::counted(tests::normal({N, V}, 1));
  cross_entropy::Forward<Counted> out;
  const Count forward = tests::operations_of([&] { out = cross_entropy::forward(logits, targets, 5, 0.1); });
  const Count backward =
      tests::operations_of([&] { cross_entropy::backward(1, logits, targets, out.lse, 5, 0.1); });
  RC_ASSERT(out.valid == valid);
  RC_ASSERT((forward == spec::cross_entropy::forward_flops({.N = N, .V = V}, valid).vector));
  RC_ASSERT((backward == spec::cross_entropy::backward_flops({.N = N, .V = V}, valid).vector));
}

RC_GTEST_PROP(CrossEntropyReference, IgnoredRowsHaveZeroGradientAndNoSay, ()) {
  const Index N = *rc::gen::inRange(1, 6), V = *rc::gen::inRange(1, 8);
  const Ids targets = draw_targets(N, V);
  const auto logits = tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>());
  auto moved = logits;
  for (Index n = 0; n < N; ++n) {
    if (targets[static_cast<std::size_t>(n)] == spec::cross_entropy::ignore)
      for (Index v = 0; v < V; ++v) moved(n, v) = 100.0 * static_cast<double>(v + 1);
  }
  const auto out = cross_entropy::forward(logits, targets, 3, 0.1);
  RC_ASSERT(cross_entropy::forward(moved, targets, 3, 0.1).loss == out.loss);
  const auto gradient = cross_entropy::backward(1, logits, targets, out.lse, 3, 0.1);
  for (Index n = 0; n < N; ++n) {
    const bool ignored = targets[static_cast<std::size_t>(n)] == spec::cross_entropy::ignore;
    for (Index v = 0; v < V; ++v) RC_ASSERT(!ignored || gradient(n, v) == 0);
  }
}

RC_GTEST_PROP(CrossEntropyReference, AddingAConstantToARowLeavesLossAndGradient, ()) {
  const Index N = *rc::gen::inRange(1, 5), V = *rc::gen::inRange(1, 8);
  const Ids targets = draw_targets(N, V);
  const auto logits = tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>());
  auto moved = logits;
  moved.flat() += 3;
  const auto a = cross_entropy::forward(logits, targets, 2, 0),
             b = cross_entropy::forward(moved, targets, 2, 0);
  // Each logit of at most 10 in size is rounded once by the shift, and each lse and each loss term a few
  // times.
  const double bound = gamma(static_cast<double>(N + V) + 8, u) * 13 * static_cast<double>(N);
  ASSAY_RC_CLOSE(scalar(b.loss), scalar(a.loss), Allowed::elementwise({bound}));
  const auto da = cross_entropy::backward(1, logits, targets, a.lse, 2, 0);
  const auto db = cross_entropy::backward(1, moved, targets, b.lse, 2, 0);
  RC_ASSERT((da.flat() - db.flat()).abs().maxCoeff() <= bound);
}

RC_GTEST_PROP(CrossEntropyReference, GradientOfAValidRowSumsToItsZTerm, ()) {
  // sum_v p = 1 is the definition of lse: what remains of the row's sum is 2 z lse d / Z.
  const Index V = *rc::gen::inRange(1, 12);
  const double z_loss = *rc::gen::element(0.0, 0.3);
  const auto logits = tests::normal({1, V}, *rc::gen::arbitrary<std::uint64_t>(), 3);
  const auto out = cross_entropy::forward(logits, {0}, 4, z_loss);
  const double sum = cross_entropy::backward(2, logits, {0}, out.lse, 4, z_loss).flat().sum();
  const double largest = logits.flat().abs().maxCoeff() + std::log(static_cast<double>(V));
  const double scale = (1 + 2 * z_loss * std::abs(out.lse[0])) * 2 / 4;
  // p has the absolute error of logit - lse, itself of size `largest`, as a relative one.
  ASSAY_RC_CLOSE(
      scalar(sum), scalar(2 * z_loss * out.lse[0] * 2 / 4),
      Allowed::elementwise({2 * gamma(2 * static_cast<double>(V) + 12, u) * scale * (1 + largest)}));
}

RC_GTEST_PROP(CrossEntropyReference, PartsUnderTheGlobalNormalizerAddUpToTheWhole, ()) {
  const Index N = *rc::gen::inRange(2, 7), V = *rc::gen::inRange(1, 8),
              first = *rc::gen::inRange<Index>(1, N);
  const Ids targets = draw_targets(N, V);
  const double normalizer =
      static_cast<double>(std::max<Index>(spec::cross_entropy::count_valid(targets), 1));
  const auto logits = tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>());
  const auto whole = cross_entropy::forward(logits, targets, normalizer, 0.1);
  const auto gradient = cross_entropy::backward(1, logits, targets, whole.lse, normalizer, 0.1);
  double loss = 0;
  for (const auto& [begin, end] : {std::pair{Index{0}, first}, std::pair{first, N}}) {
    Tensor<double> part({end - begin, V}), expected({end - begin, V});
    part.flat() = logits.flat().segment(begin * V, part.size());
    expected.flat() = gradient.flat().segment(begin * V, part.size());
    const Ids part_targets(targets.begin() + begin, targets.begin() + end);
    const auto out = cross_entropy::forward(part, part_targets, normalizer, 0.1);
    loss += out.loss;
    RC_ASSERT(
        (cross_entropy::backward(1, part, part_targets, out.lse, normalizer, 0.1).flat() == expected.flat())
            .all());
  }
  // All terms of both sums are positive: only the order of the additions differs.
  ASSAY_RC_CLOSE(scalar(loss), scalar(whole.loss),
                 Allowed::relative(2 * gamma(static_cast<double>(N) + 4, u)));
}

}  // namespace
}  // namespace assay::reference::cross_entropy_test
