// labels: unit property golden
#include "reference/ops/permute.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "reference/counted.hpp"
#include "spec/ops/permute/permute.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::permute_test {
namespace {

using permute::Plan;
using tests::Allowed;
using tests::values;

/// A choices of N tokens among X experts, no two of a token equal.
struct Choices {
  Index N, A, X;
  Ids chosen;

  static Choices draw(std::uint64_t seed, Index fewest = 0) {
    Choices c{
        .N = *rc::gen::inRange<Index>(fewest, 7), .A = 0, .X = *rc::gen::inRange<Index>(1, 6), .chosen = {}};
    c.A = 1 + *rc::gen::inRange<Index>(0, 60) % c.X;
    const auto order = tests::normal({c.N + 1, c.X}, seed);
    for (Index n = 0; n < c.N; ++n) {
      Ids all;
      for (Index e = 0; e < c.X; ++e) all.push_back(e);
      std::sort(all.begin(), all.end(), [&](Index a, Index b) { return order(n, a) < order(n, b); });
      c.chosen.insert(c.chosen.end(), all.begin(), all.begin() + c.A);
    }
    return c;
  }
  Plan plan(std::optional<double> factor = std::nullopt) const {
    return permute::plan(chosen, N, A, X, factor);
  }
};

std::optional<double> draw_factor() {
  return *rc::gen::element<std::optional<double>>(std::nullopt, 0.3, 0.5, 1.0, 1.25, 10.0);
}

TEST(PermuteReference, GivesTheSpecExample) {
  Plan plan = permute::plan({2, 0, 0, 2}, 2, 2, 3);
  EXPECT_EQ(plan.offsets, (Ids{0, 2, 2, 4}));
  EXPECT_EQ(plan.tokens, (Ids{0, 1, 0, 1}));
  EXPECT_EQ(plan.slots, (Ids{1, 0, 0, 1}));
  EXPECT_EQ(plan.rows, (Ids{2, 0, 1, 3}));
  EXPECT_EQ(plan.dropped, 0);
  plan = permute::plan({2, 0, 0, 2}, 2, 2, 3, 0.75);
  EXPECT_EQ(plan.offsets, (Ids{0, 1, 1, 2}));
  EXPECT_EQ(plan.rows, (Ids{1, 0, -1, -1}));
  EXPECT_EQ(plan.dropped, 0.5);
}

TEST(PermuteReference, MatchesTorchFloat64) {
  for (const std::string name : {"dropless", "capacity"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden("ops/permute/" + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto shape = golden.shape("chosen");
    const bool limited = golden.scalar("capacity") > 0;
    const Index X = golden.shape("offsets").at(0) - 1;
    // 0.8 * 8 * 3 / 4 = 4.8: five rows an expert.
    const Plan plan = permute::plan(golden.ids("chosen"), shape.at(0), shape.at(1), X,
                                    limited ? std::optional(0.8) : std::nullopt);
    EXPECT_EQ(plan.offsets, golden.ids("offsets"));
    EXPECT_EQ(plan.tokens, golden.ids("tokens"));
    EXPECT_EQ(plan.slots, golden.ids("slots"));
    EXPECT_EQ(plan.dropped > 0, limited);
    ASSAY_EXPECT_CLOSE(values(permute::forward(tensor("x"), plan)), golden.tensor("y"), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(permute::backward(tensor("dy"), plan)), golden.tensor("dx"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(permute::unpermute(tensor("z"), tensor("weights"), plan)),
                       golden.tensor("back"), Allowed::relative(1e-10));
    const auto gradient = permute::unpermute_backward(tensor("dback"), tensor("z"), tensor("weights"), plan);
    ASSAY_EXPECT_CLOSE(values(gradient.dz), golden.tensor("dz"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dweights), golden.tensor("dweights"), Allowed::relative(1e-10));
  }
}

TEST(PermuteReference, ConstraintsAreHeld) {
  const Plan plan = permute::plan({2, 0, 0, 2}, 2, 2, 3);
  EXPECT_THROW(permute::plan({2, 0, 0, 3}, 2, 2, 3), SpecError);
  EXPECT_THROW(permute::plan({2, 0, 0, 2}, 2, 2, 3, 0.0), SpecError);
  EXPECT_THROW(permute::forward(tests::normal({3, 2}, 1), plan), SpecError);
  EXPECT_THROW(permute::backward(tests::normal({3, 2}, 1), plan), SpecError);
  EXPECT_THROW(permute::unpermute(tests::normal({4, 2}, 1), tests::normal({2, 1}, 2), plan), SpecError);
  EXPECT_THROW(permute::unpermute_backward(tests::normal({3, 2}, 1), tests::normal({4, 2}, 1),
                                           tests::normal({2, 2}, 2), plan),
               SpecError);
}

RC_GTEST_PROP(PermuteReference, SortsStablyAndInverts, (std::uint64_t seed)) {
  const Choices c = Choices::draw(seed);
  const auto factor = draw_factor();
  const Plan plan = c.plan(factor);
  const auto at = [](const Ids& list, Index i) { return list[static_cast<std::size_t>(i)]; };
  RC_ASSERT(static_cast<Index>(plan.offsets.size()) == c.X + 1 && plan.offsets.back() == plan.R());
  Index kept = 0;
  for (Index e = 0; e < c.X; ++e) {
    Index last = -1;
    for (Index r = at(plan.offsets, e); r < at(plan.offsets, e + 1); ++r) {
      const Index choice = at(plan.tokens, r) * c.A + at(plan.slots, r);
      RC_ASSERT(at(c.chosen, choice) == e && at(plan.rows, choice) == r);
      RC_ASSERT(choice > last);  // first come
      last = choice, ++kept;
    }
    // What was dropped came later than everything that was kept.
    const Index rows = at(plan.offsets, e + 1) - at(plan.offsets, e);
    Index wanted = 0;
    for (Index i = 0; i < c.N * c.A; ++i)
      if (at(c.chosen, i) == e) {
        ++wanted;
        if (at(plan.rows, i) < 0) RC_ASSERT(i > last);
      }
    const Index most = factor ? spec::permute::capacity({.N = c.N, .A = c.A, .X = c.X}, *factor) : c.N;
    RC_ASSERT(rows == std::min(wanted, most));
  }
  RC_ASSERT(kept == plan.R());
  if (!factor) RC_ASSERT(plan.R() == c.N * c.A && plan.dropped == 0);
  if (c.N > 0)
    RC_ASSERT(std::abs(plan.dropped * static_cast<double>(c.N * c.A) -
                       static_cast<double>(c.N * c.A - kept)) < 1e-9);
}

/// Each group of tokens is limited as if it were alone; an expert's rows are those of the groups one after
/// the other.
RC_GTEST_PROP(PermuteReference, GroupsAreLimitedOneByOne, (std::uint64_t seed)) {
  const Choices c = Choices::draw(seed, 1);
  Index groups = *rc::gen::inRange<Index>(1, c.N + 1);
  while (c.N % groups != 0) --groups;
  const Index of_group = c.N / groups;
  const auto factor = draw_factor();
  const Plan all = permute::plan(c.chosen, c.N, c.A, c.X, factor, groups);
  Ids choices;  // that are kept, by expert and group
  for (Index e = 0; e < c.X; ++e)
    for (Index g = 0; g < groups; ++g) {
      const auto first = c.chosen.begin() + g * of_group * c.A;
      const Plan one = permute::plan(Ids(first, first + of_group * c.A), of_group, c.A, c.X, factor);
      for (Index r = one.offsets[static_cast<std::size_t>(e)];
           r < one.offsets[static_cast<std::size_t>(e) + 1]; ++r)
        choices.push_back((g * of_group + one.tokens[static_cast<std::size_t>(r)]) * c.A +
                          one.slots[static_cast<std::size_t>(r)]);
    }
  RC_ASSERT(all.R() == static_cast<Index>(choices.size()));
  for (std::size_t r = 0; r < choices.size(); ++r)
    RC_ASSERT(all.tokens[r] * c.A + all.slots[r] == choices[r]);
}

/// Weights of 1/A bring every token back.
RC_GTEST_PROP(PermuteReference, UnpermuteInvertsPermute, (std::uint64_t seed)) {
  const Choices c = Choices::draw(seed, 1);
  const Index D = *rc::gen::inRange<Index>(1, 5);
  const Plan plan = c.plan();
  const auto x = tests::normal({c.N, D}, seed);
  Tensor<double> weights({c.N, c.A});
  weights.flat() = 1 / static_cast<double>(c.A);
  const auto back = permute::unpermute(permute::forward(x, plan), weights, plan);
  ASSAY_RC_CLOSE(values(back), values(x), Allowed::relative(1e-14));
}

RC_GTEST_PROP(PermuteReference, BackwardMatchesCentralDifference, (std::uint64_t seed)) {
  const Choices c = Choices::draw(seed, 1);
  const Index D = *rc::gen::inRange<Index>(1, 4);
  const Plan plan = c.plan(draw_factor());
  const auto x = tests::normal({c.N, D}, seed), dy = tests::normal({plan.R(), D}, seed + 1);
  const auto z = tests::normal({plan.R(), D}, seed + 2), weights = tests::normal({c.N, c.A}, seed + 3),
             dback = tests::normal({c.N, D}, seed + 4);
  const auto close = [](const Tensor<double>& actual, const tests::Values& expected) {
    const auto result =
        tests::close(values(actual), expected, Allowed::relative(1e-7), /*zeros_expected=*/true);
    if (!result) RC_FAIL(std::string(result.message()));
  };
  close(permute::backward(dy, plan),
        tests::central_difference([&](const auto& at) { return tests::dot(dy, permute::forward(at, plan)); },
                                  x));
  const auto gradient = permute::unpermute_backward(dback, z, weights, plan);
  close(gradient.dz,
        tests::central_difference(
            [&](const auto& at) { return tests::dot(dback, permute::unpermute(at, weights, plan)); }, z));
  close(gradient.dweights,
        tests::central_difference(
            [&](const auto& at) { return tests::dot(dback, permute::unpermute(z, at, plan)); }, weights));
}

RC_GTEST_PROP(PermuteReference, ExecutesExactlyTheFlopsOfTheSpec, (std::uint64_t seed)) {
  const Choices c = Choices::draw(seed);
  const Index D = *rc::gen::inRange<Index>(1, 4);
  const Plan plan = c.plan(draw_factor());
  const auto x = tests::counted(tests::normal({c.N, D}, seed)),
             z = tests::counted(tests::normal({plan.R(), D}, 1)),
             weights = tests::counted(tests::normal({c.N, c.A}, 2));
  RC_ASSERT(tests::operations_of([&] { permute::forward(x, plan); }) == Count(0));
  RC_ASSERT(tests::operations_of([&] { permute::backward(z, plan); }) ==
            spec::permute::backward_flops(plan.R(), D).vector);
  RC_ASSERT(tests::operations_of([&] { permute::unpermute(z, weights, plan); }) ==
            spec::permute::unpermute_forward_flops(plan.R(), D).vector);
  RC_ASSERT(tests::operations_of([&] { permute::unpermute_backward(x, z, weights, plan); }) ==
            spec::permute::unpermute_backward_flops(plan.R(), D).vector);
}

}  // namespace
}  // namespace assay::reference::permute_test
