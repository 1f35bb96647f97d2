// labels: unit property golden
#include "reference/ops/load_balancing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::load_balancing_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

tests::Values scalar(double value) { return {{1}, {value}}; }

/// Shapes, choices, probabilities and shares, all drawn: G groups of 1 to 4 rows.
struct Case {
  Index G, N, X, A;
  Ids chosen;
  Tensor<double> p, f;

  static Case draw(std::uint64_t seed) {
    Case c{};
    c.G = *rc::gen::inRange<Index>(1, 4), c.X = *rc::gen::inRange<Index>(1, 6);
    c.N = c.G * *rc::gen::inRange<Index>(1, 5), c.A = 1 + *rc::gen::inRange<Index>(0, 60) % c.X;
    const auto raw = tests::normal({c.N, c.X}, seed);
    for (Index n = 0; n < c.N; ++n)  // consecutive experts, from anywhere on
      for (Index a = 0; a < c.A; ++a)
        c.chosen.push_back((static_cast<Index>(std::abs(raw(n, 0)) * 1000) + a) % c.X);
    c.p = Tensor<double>({c.N, c.X});
    for (Index i = 0; i < c.p.size(); ++i) c.p[i] = std::abs(raw[i]);
    c.f = load_balancing::shares<double>(c.chosen, c.A, c.X, c.G);
    return c;
  }
};

TEST(LoadBalancingReference, GivesTheSpecExample) {
  const auto f = load_balancing::shares<double>({0, 0, 0, 1}, 1, 2, 1);
  ASSAY_EXPECT_CLOSE(values(f), (tests::Values{{1, 2}, {0.75, 0.25}}), Allowed::exact());
  Tensor<double> p({4, 2});
  for (Index n = 0; n < 4; ++n) p(n, 0) = 0.75, p(n, 1) = 0.25;
  EXPECT_EQ(load_balancing::forward(p, f, 1, 4), 1.25);
  ASSAY_EXPECT_CLOSE(values(load_balancing::backward(1, f, 4, 1, 4)),
                     (tests::Values{{4, 2}, {0.375, 0.125, 0.375, 0.125, 0.375, 0.125, 0.375, 0.125}}),
                     Allowed::exact());
  std::vector<double> bias{0, 0};
  spec::load_balancing::move_bias(bias, spec::load_balancing::counts(Ids{0, 0, 0, 1}, 2), 0.1);
  EXPECT_EQ(bias, (std::vector<double>{-0.1, 0.1}));
  const auto z = load_balancing::z_forward(Tensor<double>({4, 2}), 4);
  ASSAY_EXPECT_CLOSE(scalar(z.loss), scalar(std::log(2.0) * std::log(2.0)), Allowed::relative(gamma(8, u)));
}

TEST(LoadBalancingReference, MatchesTorchFloat64) {
  for (const std::string name : {"one_group", "two_groups_of_a_part"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden("ops/load_balancing/" + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const double Z = golden.scalar("normalizer");
    const Index A = golden.shape("chosen").at(1), G = golden.shape("f").at(0);
    const auto p = tensor("p"), logits = tensor("logits");
    const auto f = load_balancing::shares<double>(golden.ids("chosen"), A, p.extent(1), G);
    ASSAY_EXPECT_CLOSE(values(f), golden.tensor("f"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(scalar(load_balancing::forward(p, f, A, Z)), scalar(golden.scalar("balance")),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(load_balancing::backward(1, f, p.extent(0), A, Z)), golden.tensor("dp"),
                       Allowed::relative(1e-10));
    const auto z = load_balancing::z_forward(logits, Z);
    ASSAY_EXPECT_CLOSE(scalar(z.loss), scalar(golden.scalar("router_z")), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(load_balancing::z_backward(1, logits, z.lse, Z)), golden.tensor("dlogits"),
                       Allowed::relative(1e-10));
  }
}

TEST(LoadBalancingReference, ConstraintsAreHeld) {
  const auto f = load_balancing::shares<double>({0, 1, 1, 0}, 1, 2, 2);
  const auto p = tests::normal({4, 2}, 1);
  EXPECT_THROW(load_balancing::shares<double>({0, 1, 1, 0}, 1, 2, 3), SpecError);
  EXPECT_THROW(load_balancing::forward(tests::normal({3, 2}, 1), f, 1, 4), SpecError);
  EXPECT_THROW(load_balancing::forward(p, f, 1, 0), SpecError);
  EXPECT_THROW(load_balancing::forward(p, tests::normal({2, 2}, 3), 1, 4), SpecError);
  EXPECT_THROW(load_balancing::z_forward(p, -1), SpecError);
}

RC_GTEST_PROP(LoadBalancingReference, SharesOfAGroupSumToOneAndEqualLoadsCostOne, (std::uint64_t seed)) {
  const Case c = Case::draw(seed);
  for (Index g = 0; g < c.G; ++g) {
    double sum = 0;
    for (Index e = 0; e < c.X; ++e) sum += c.f(g, e);
    RC_ASSERT(std::abs(sum - 1) <= gamma(static_cast<double>(c.X) + 1, u));
  }
  // Every expert once: the loss is 1 for any probabilities whose rows sum to 1.
  Ids all;
  for (Index e = 0; e < c.X; ++e) all.push_back(e);
  Tensor<double> p({c.X, c.X});
  for (Index n = 0; n < c.X; ++n) p(n, 0) = 1;
  const double X = static_cast<double>(c.X);
  const double loss = load_balancing::forward(p, load_balancing::shares<double>(all, 1, c.X, 1), 1, X);
  RC_ASSERT(std::abs(loss - 1) <= gamma(X * X + 3, u));
}

/// Parts of a batch with the shares and the normalizer of the whole add up to the whole.
RC_GTEST_PROP(LoadBalancingReference, PartsAddUp, (std::uint64_t seed)) {
  const Case c = Case::draw(seed);
  const auto f = load_balancing::shares<double>(c.chosen, c.A, c.X, 1);
  const double Z = static_cast<double>(c.N), whole = load_balancing::forward(c.p, f, c.A, Z);
  const Index cut = *rc::gen::inRange<Index>(0, 20) % (c.N + 1);
  double parts = 0;
  for (const auto& [begin, end] : {std::pair(Index{0}, cut), std::pair(cut, c.N)}) {
    Tensor<double> part({end - begin, c.X});
    part.flat() = c.p.flat().segment(begin * c.X, part.size());
    parts += load_balancing::forward(part, f, c.A, Z);
  }
  RC_ASSERT(std::abs(parts - whole) <= gamma(static_cast<double>(c.N * c.X) + 4, u) * whole);
}

RC_GTEST_PROP(LoadBalancingReference, BackwardMatchesCentralDifference, (std::uint64_t seed)) {
  const Case c = Case::draw(seed);
  const auto logits = tests::normal({c.N, c.X}, seed + 1);
  const double Z = 2.5, upstream = 0.7;
  const auto dp = load_balancing::backward(upstream, c.f, c.N, c.A, Z);
  const auto close = [](const Tensor<double>& actual, const tests::Values& expected) {
    const auto result =
        tests::close(values(actual), expected, Allowed::relative(1e-7), /*zeros_expected=*/true);
    if (!result) RC_FAIL(std::string(result.message()));
  };
  close(dp, tests::central_difference(
                [&](const auto& at) { return upstream * load_balancing::forward(at, c.f, c.A, Z); }, c.p));
  const auto z = load_balancing::z_forward(logits, Z);
  close(load_balancing::z_backward(upstream, logits, z.lse, Z),
        tests::central_difference(
            [&](const auto& at) { return upstream * load_balancing::z_forward(at, Z).loss; }, logits));
}

RC_GTEST_PROP(LoadBalancingReference, ExecutesExactlyTheFlopsOfTheSpec, (std::uint64_t seed)) {
  const Case c = Case::draw(seed);
  const auto p = tests::counted(c.p), f = tests::counted(c.f);
  const spec::load_balancing::Shape shape{.N = c.N, .X = c.X, .G = c.G};
  RC_ASSERT(tests::operations_of([&] { load_balancing::shares<Counted>(c.chosen, c.A, c.X, c.G); }) ==
            spec::load_balancing::shares_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { load_balancing::forward(p, f, c.A, 3); }) ==
            spec::load_balancing::forward_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { load_balancing::backward(1, f, c.N, c.A, 3); }) ==
            spec::load_balancing::backward_flops(shape).vector);
  load_balancing::ZLoss<Counted> z;
  RC_ASSERT(tests::operations_of([&] { z = load_balancing::z_forward(p, 3); }) ==
            spec::load_balancing::z_forward_flops(c.N, c.X).vector);
  RC_ASSERT(tests::operations_of([&] { load_balancing::z_backward(1, p, z.lse, 3); }) ==
            spec::load_balancing::z_backward_flops(c.N, c.X).vector);
}

}  // namespace
}  // namespace assay::reference::load_balancing_test
