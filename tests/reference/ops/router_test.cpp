// labels: unit property golden
#include "reference/ops/router.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "spec/ops/router/router.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::router_test {
namespace {

using spec::Experts;
using tests::Allowed;
using tests::values;
using enum spec::Scoring;

const double u = unit_roundoff(Dtype::f64);
const Tensor<double> none;

/// A row whose logits are `logits`, with weight the identity.
router::Forward<double> of_logits(const std::vector<double>& logits, const Experts& experts,
                                  const Tensor<double>& bias = none) {
  const auto X = static_cast<Index>(logits.size());
  Tensor<double> identity({X, X});
  for (Index e = 0; e < X; ++e) identity(e, e) = 1;
  return router::forward(Tensor<double>({1, X}, logits), identity, bias, experts);
}

TEST(RouterReference, GivesTheSpecExample) {
  const Tensor<double> x({1, 1}, {1}), weight({4, 1}, {0, std::log(2.0), std::log(4.0), 0});
  Experts e{.count = 4, .active = 2, .width = 1};
  auto out = router::forward(x, weight, none, e);
  ASSAY_EXPECT_CLOSE(values(out.scores), (tests::Values{{1, 4}, {1 / 8., 2 / 8., 4 / 8., 1 / 8.}}),
                     Allowed::relative(gamma(12, u)));
  EXPECT_EQ(out.chosen, (Ids{2, 1}));
  ASSAY_EXPECT_CLOSE(values(out.weights), (tests::Values{{1, 2}, {2 / 3., 1 / 3.}}),
                     Allowed::relative(gamma(16, u)));
  e.renormalised = false;
  out = router::forward(x, weight, none, e);
  ASSAY_EXPECT_CLOSE(values(out.weights), (tests::Values{{1, 2}, {1 / 2., 1 / 4.}}),
                     Allowed::relative(gamma(12, u)));
  e.active = 3;
  EXPECT_EQ(router::forward(x, weight, none, e).chosen, (Ids{2, 1, 0}));
}

TEST(RouterReference, MatchesTorchFloat64) {
  for (const std::string name : {"softmax", "softmax_renormalised", "sigmoid_groups"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden("ops/router/" + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const bool grouped = name == "sigmoid_groups";
    const auto whole = [&](const char* key) { return static_cast<Index>(golden.scalar(key)); };
    const Experts e{.count = golden.shape("weight").at(0),
                    .active = golden.shape("chosen").at(1),
                    .width = 1,
                    .router_bias = grouped,
                    .scoring = grouped ? sigmoid : softmax,
                    .renormalised = whole("renormalised") == 1,
                    .groups = whole("groups"),
                    .active_groups = whole("active_groups"),
                    .scaling_factor = golden.scalar("scaling_factor")};
    const auto out = router::forward(tensor("x"), tensor("weight"), grouped ? tensor("bias") : none, e);
    EXPECT_EQ(out.chosen, golden.ids("chosen"));
    ASSAY_EXPECT_CLOSE(values(out.logits), golden.tensor("logits"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.weights), golden.tensor("weights"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(router::probabilities(out.scores, e)), golden.tensor("p"),
                       Allowed::relative(1e-10));
    const auto gradient = router::backward(tensor("dweights"), tensor("dp"), tensor("dlogits"), out,
                                           tensor("x"), tensor("weight"), e);
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dweight), golden.tensor("dweight"), Allowed::relative(1e-10));
  }
}

TEST(RouterReference, ConstraintsAreHeld) {
  const Experts e{.count = 4, .active = 2, .width = 1};
  const auto x = tests::normal({3, 5}, 1), weight = tests::normal({4, 5}, 2);
  const auto out = router::forward(x, weight, none, e);
  EXPECT_THROW(router::forward(x, tests::normal({3, 5}, 2), none, e), SpecError);
  EXPECT_THROW(router::forward(x, weight, none, Experts{.count = 4, .active = 5, .width = 1}), SpecError);
  EXPECT_THROW(router::forward(x, weight, tests::normal({4}, 3), e), SpecError);
  EXPECT_THROW(router::backward(tests::normal({3, 3}, 4), none, none, out, x, weight, e), SpecError);
}

TEST(RouterReference, EqualValuesGoToTheLowerIndexAmongExpertsAndGroups) {
  EXPECT_EQ(of_logits({1, 1, 1, 1}, {.count = 4, .active = 3, .width = 1}).chosen, (Ids{0, 1, 2}));
  EXPECT_EQ(of_logits({0, 2, 2, 1, 2}, {.count = 5, .active = 2, .width = 1}).chosen, (Ids{1, 2}));
  // The groups tie at the sum of their two best; expert 2 is better than 1, but of the second group.
  const Experts grouped{
      .count = 4, .active = 2, .width = 1, .scoring = sigmoid, .groups = 2, .active_groups = 1};
  EXPECT_EQ(of_logits({1, 0, 1, 0}, grouped).chosen, (Ids{0, 1}));
}

TEST(RouterReference, TheBiasIsInTheChoiceAlone) {
  const Experts e{
      .count = 3, .active = 1, .width = 1, .router_bias = true, .scoring = sigmoid, .renormalised = false};
  const auto out = of_logits({2, 0, -1}, e, Tensor<double>({3}, {0, 0, 3}));
  EXPECT_EQ(out.chosen, (Ids{2}));
  ASSAY_EXPECT_CLOSE(values(out.weights), (tests::Values{{1, 1}, {1 / (1 + std::exp(1.0))}}),
                     Allowed::relative(gamma(8, u)));
}

/// Biased values below 0 stay in the race: an expert outside the best groups is not chosen in their place.
TEST(RouterReference, ExpertsOutsideTheBestGroupsAreNeverChosen) {
  const Experts e{.count = 6,
                  .active = 3,
                  .width = 1,
                  .router_bias = true,
                  .scoring = sigmoid,
                  .groups = 2,
                  .active_groups = 1};
  // s + b: group 0 has 0.9, 0.9 and -0.5; group 1 has 1.2, 0.5 and 0.5. 1.8 beats 1.7.
  const auto out = of_logits({0, 0, 0, 0, 0, 0}, e, Tensor<double>({6}, {0.4, 0.4, -1, 0.7, 0, 0}));
  EXPECT_EQ(out.chosen, (Ids{0, 1, 2}));
  // By the mean, or by the best alone, it would be group 1.
}

TEST(RouterReference, SigmoidsThatUnderflowGetNoWeight) {
  const Experts e{.count = 2, .active = 2, .width = 1, .scoring = sigmoid};
  const auto out = of_logits({-800, -800}, e);
  EXPECT_TRUE(tests::close(values(out.weights), {{1, 2}, {0, 0}}, Allowed::exact(), true));
  const auto far = of_logits({-800, 800}, {.count = 2, .active = 1, .width = 1});
  EXPECT_EQ(far.weights[0], 1);
}

/// Random options and inputs whose choice no step of a central difference changes.
struct Case {
  Experts e;
  Tensor<double> x, weight, bias;

  static Case draw(std::uint64_t seed) {
    Case c;
    c.e = tests::draw_experts(1);
    const Index N = *rc::gen::inRange(1, 4), D = *rc::gen::inRange(1, 5), X = c.e.count;
    for (int more = 0;; ++more) {
      RC_ASSERT(more < 10000);
      const std::uint64_t at = seed + 3 * static_cast<std::uint64_t>(more);
      c.x = tests::normal({N, D}, at), c.weight = tests::normal({X, D}, at + 1);
      c.bias = c.e.router_bias ? tests::normal({X}, at + 2, 0.3) : none;
      if (c.separated()) return c;
    }
  }

  /// A step of 2e-3 of one entry moves a value by less than half of the gap.
  bool separated() const {
    const auto out = router::forward(x, weight, bias, e);
    for (Index n = 0; n < x.extent(0); ++n) {
      std::vector<double> by, groups;
      for (Index i = 0; i < e.count; ++i) by.push_back(out.scores(n, i) + (e.router_bias ? bias(i) : 0));
      const Index of_group = e.count / e.groups;
      for (Index g = 0; g < e.groups && e.groups > 1; ++g) {
        std::vector<double> inside(by.begin() + g * of_group, by.begin() + (g + 1) * of_group);
        std::sort(inside.rbegin(), inside.rend());
        groups.push_back(inside[0] + inside[1]);
      }
      // Without bias a softmax's order is that of the logits, whose gaps are the wider ones.
      if (!e.router_bias && e.scoring == softmax)
        for (Index i = 0; i < e.count; ++i) by[static_cast<std::size_t>(i)] = out.logits(n, i);
      for (auto* list : {&by, &groups}) {
        std::sort(list->begin(), list->end());
        for (std::size_t i = 1; i < list->size(); ++i)
          if ((*list)[i] - (*list)[i - 1] < 0.02 * std::max(1.0, x.flat().abs().maxCoeff()) / 2) return false;
      }
    }
    return true;
  }
};

RC_GTEST_PROP(RouterReference, BackwardMatchesCentralDifference, (std::uint64_t seed)) {
  const Case c = Case::draw(seed);
  const Index N = c.x.extent(0), X = c.e.count, A = c.e.active;
  const auto dweights = tests::normal({N, A}, seed + 7);
  const auto dp = *rc::gen::arbitrary<bool>() ? tests::normal({N, X}, seed + 8) : none;
  const auto dlogits = *rc::gen::arbitrary<bool>() ? tests::normal({N, X}, seed + 9) : none;
  const auto loss = [&](const Tensor<double>& x, const Tensor<double>& weight) {
    const auto out = router::forward(x, weight, c.bias, c.e);
    double sum = tests::dot(dweights, out.weights);
    if (dp.size() > 0) sum += tests::dot(dp, router::probabilities(out.scores, c.e));
    if (dlogits.size() > 0) sum += tests::dot(dlogits, out.logits);
    return sum;
  };
  const auto out = router::forward(c.x, c.weight, c.bias, c.e);
  const auto gradient = router::backward(dweights, dp, dlogits, out, c.x, c.weight, c.e);
  const auto close = [](const Tensor<double>& actual, const tests::Values& expected) {
    // One chosen expert alone, renormalised, has weight 1 whatever its score: the gradient is zero.
    double largest = 0;
    for (const double entry : expected.data) largest = std::max(largest, std::abs(entry));
    const auto result = tests::close(
        values(actual), expected,
        Allowed::elementwise(std::vector<double>(expected.data.size(), 1e-7 * std::max(largest, 1e-3))),
        true);
    if (!result) RC_FAIL(std::string(result.message()));
  };
  close(gradient.dx, tests::central_difference([&](const auto& x) { return loss(x, c.weight); }, c.x));
  close(gradient.dweight, tests::central_difference([&](const auto& w) { return loss(c.x, w); }, c.weight));
}

RC_GTEST_PROP(RouterReference, ExecutesExactlyTheFlopsOfTheSpec, (std::uint64_t seed)) {
  const Experts e = tests::draw_experts(1);
  const Index N = *rc::gen::inRange(0, 4), D = *rc::gen::inRange(1, 5), X = e.count;
  const auto x = tests::counted(tests::normal({N, D}, seed)),
             w = tests::counted(tests::normal({X, D}, seed + 1));
  const auto bias = e.router_bias ? tests::counted(tests::normal({X}, seed + 2)) : Tensor<Counted>();
  const spec::router::Shape shape{.N = N, .D = D};
  const auto total = [](const Flops& flops) { return flops.matmul + flops.vector; };
  router::Forward<Counted> out;
  RC_ASSERT(tests::operations_of([&] { out = router::forward(x, w, bias, e); }) ==
            total(spec::router::forward_flops(shape, e)));
  RC_ASSERT(tests::operations_of([&] { router::probabilities(out.scores, e); }) ==
            total(spec::router::probabilities_flops(N, e)));
  for (const bool p : {false, true})
    for (const bool l : {false, true}) {
      const auto dp = p ? tests::counted(tests::normal({N, X}, seed)) : Tensor<Counted>(),
                 dl = l ? tests::counted(tests::normal({N, X}, seed)) : Tensor<Counted>();
      // No rows leave an upstream without entries.
      const spec::router::Auxiliary given{.probabilities = p && N > 0, .logits = l && N > 0};
      RC_ASSERT(tests::operations_of([&] { router::backward(out.weights, dp, dl, out, x, w, e); }) ==
                total(spec::router::backward_flops(shape, e, given)));
    }
}

RC_GTEST_PROP(RouterReference, ChoosesDistinctExpertsOfTheBestGroupsRowByRow, (std::uint64_t seed)) {
  const Experts e = tests::draw_experts(1);
  const Index N = *rc::gen::inRange(1, 6), D = *rc::gen::inRange(1, 5), X = e.count, A = e.active;
  const auto x = tests::normal({N, D}, seed), w = tests::normal({X, D}, seed + 1);
  const auto bias = e.router_bias ? tests::normal({X}, seed + 2) : none;
  const auto out = router::forward(x, w, bias, e);
  for (Index n = 0; n < N; ++n) {
    const Ids row(out.chosen.begin() + n * A, out.chosen.begin() + (n + 1) * A);
    std::set<Index> distinct(row.begin(), row.end()), groups;
    for (const Index expert : row) groups.insert(expert / (X / e.groups));
    RC_ASSERT(static_cast<Index>(distinct.size()) == A);
    RC_ASSERT(static_cast<Index>(groups.size()) <= e.active_groups);
    // A row's choice and weights are those that it has alone.
    Tensor<double> one({1, D});
    one.flat() = x.flat().segment(n * D, D);
    const auto alone = router::forward(one, w, bias, e);
    RC_ASSERT(alone.chosen == row);
    double sum = 0;
    for (Index a = 0; a < A; ++a) {
      RC_ASSERT(alone.weights(0, a) == out.weights(n, a));
      sum += out.weights(n, a);
    }
    if (e.renormalised)
      RC_ASSERT(std::abs(sum - e.scaling_factor) <= gamma(2. * A + 6, u) * e.scaling_factor);
  }
}

}  // namespace
}  // namespace assay::reference::router_test
