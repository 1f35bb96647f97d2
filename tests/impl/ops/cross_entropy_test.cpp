// labels: parity property
#include "impl/ops/cross_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/cross_entropy.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using reference::Tensor;
using tests::exact;
using tests::values;

struct Drawn {
  at::ScalarType type;
  Index N = *rc::gen::inRange<Index>(1, 12), V = *rc::gen::inRange<Index>(1, 60);
  double normalizer = *rc::gen::element(1.0, 29.0), z = *rc::gen::element(0.0, 1e-4, 1e-2);
  at::Tensor logits =
      tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>(), type, *rc::gen::element(1.0, 8.0));
  reference::Ids targets;
  explicit Drawn(at::ScalarType of) : type(of) {
    for (Index n = 0; n < N; ++n)
      targets.push_back(*rc::gen::inRange<Index>(0, 4) ? *rc::gen::inRange<Index>(0, V) : -100);
  }
};

/// Absolute errors of lse (spec/ops/cross_entropy.md, exp counted as 2 roundings), and what follows from
/// them.
struct Bounds {
  const Drawn& d;
  const Tensor<double> lse, logits = exact(d.logits);
  const tests::Rounding rounding = tests::rounding_of(d.type);

  double of_lse(Index n) const {
    double largest = logits(n, 0), least = largest;
    for (Index v = 0; v < d.V; ++v)
      largest = std::max(largest, logits(n, v)), least = std::min(least, logits(n, v));
    return rounding.gamma(static_cast<double>(d.V) + 3) + rounding.gamma(1) * (largest - least) +
           rounding.gamma(2) * (std::abs(lse[n] - largest) + std::abs(largest));
  }
  tests::Allowed of_all_lse() const {
    return tests::each(d.N, [&](Index n) { return of_lse(n); });
  }

  /// Sums of terms(n) with errors error(n), in fp64, over the normalizer.
  template <class Terms, class Errors>
  double of_sum(const Terms& terms, const Errors& errors) const {
    double sizes = 0, total = 0;
    for (Index n = 0; n < d.N; ++n) {
      if (d.targets[static_cast<std::size_t>(n)] == -100) continue;
      sizes += terms(n);
      total += errors(n);
    }
    return (total + 2 * gamma(static_cast<double>(d.N) + 4, unit_roundoff(Dtype::f64)) * (sizes + total)) /
           d.normalizer;
  }
  double of_loss() const {
    return of_sum(
        [&](Index n) {
          return std::abs(lse[n]) + std::abs(logits(n, d.targets[static_cast<std::size_t>(n)]));
        },
        [&](Index n) { return of_lse(n); });
  }
  double of_z_loss() const {
    return d.z * of_sum([&](Index n) { return lse[n] * lse[n]; },
                        [&](Index n) { return (2 * std::abs(lse[n]) + of_lse(n)) * of_lse(n); });
  }
  /// p has the absolute error of logit - lse as a relative one; six roundings for exp, the factor 1 + 2 z lse
  /// and the product; the target's entry subtracts 1.
  tests::Allowed of_gradient(const Tensor<double>& gradient) const {
    return tests::each(gradient.size(), [&](Index i) {
      const Index n = i / d.V;
      const auto target = d.targets[static_cast<std::size_t>(n)];
      if (target == -100) return 0.0;
      const double p = std::exp(logits[i] - lse[n]),
                   exponent = of_lse(n) + rounding.gamma(1) * std::abs(logits[i] - lse[n]);
      const double scaled = p * (1 + 2 * d.z * std::abs(lse[n])), hit = target == i % d.V ? 1 : 0;
      const double error = scaled * (std::expm1(exponent) + rounding.gamma(8)) * (1 + exponent) +
                           p * 2 * d.z * of_lse(n) + rounding.gamma(3) * hit +
                           rounding.gamma(1) * std::abs(scaled - hit);
      return rounding.stored(gradient[i], error / d.normalizer + rounding.smallest);
    });
  }
};

tests::Values scalar(double value) { return {{}, {value}}; }
tests::Allowed allow(double bound) { return tests::Allowed::elementwise({bound}); }

RC_GTEST_PROP(CrossEntropyImpl, MatchesReference, ()) {
  const Drawn d(tests::draw_dtype());
  const auto expected = reference::cross_entropy::forward(exact(d.logits), d.targets, d.normalizer, d.z);
  const auto gradient =
      reference::cross_entropy::backward(1.0, exact(d.logits), d.targets, expected.lse, d.normalizer, d.z);
  const Bounds bounds{d, expected.lse};
  const at::Tensor targets = tests::integers(d.targets);
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const auto out = (generic ? cross_entropy::aten::forward : cross_entropy::forward)(d.logits, targets,
                                                                                       d.normalizer, d.z);
    RC_ASSERT(out.loss.scalar_type() == at::kDouble && out.lse.scalar_type() == tests::math_of(d.type));
    ASSAY_RC_CLOSE(values(out.lse), values(expected.lse), bounds.of_all_lse());
    ASSAY_RC_CLOSE(values(out.loss), scalar(expected.cross_entropy), allow(bounds.of_loss()));
    ASSAY_RC_CLOSE(values(out.z_loss), scalar(expected.z_loss), allow(bounds.of_z_loss()));
    const at::Tensor logits = d.logits.clone();
    const at::Tensor ours = (generic ? cross_entropy::aten::backward : cross_entropy::backward)(
        logits, targets, out.lse, d.normalizer, d.z);
    RC_ASSERT(ours.is_same(logits));
    const auto result = tests::close(values(ours), values(gradient), bounds.of_gradient(gradient), true);
    if (!result) RC_FAIL(std::string(result.message()));
  }
}

RC_GTEST_PROP(CrossEntropyImpl, AgreesWithAutograd, ()) {
  const Drawn d(at::kDouble);
  const at::Tensor targets = tests::integers(d.targets), leaf = tests::leaf(d.logits),
                   lse = at::logsumexp(leaf, {1});
  const at::Tensor loss =
      at::cross_entropy_loss(leaf, targets, {}, at::Reduction::Sum, -100) / d.normalizer +
      at::where(targets.ne(-100), lse.square(), at::zeros_like(lse)).sum() * (d.z / d.normalizer);
  const at::Tensor theirs = tests::autograd(loss, at::ones({}, at::kDouble), {leaf})[0];
  const at::Tensor ours = cross_entropy::backward(
      d.logits.clone(), targets, cross_entropy::forward(d.logits, targets, d.normalizer, d.z).lse,
      d.normalizer, d.z);
  const auto result =
      tests::close(values(ours), values(theirs), Bounds{d, exact(lse)}.of_gradient(exact(theirs)), true);
  if (!result) RC_FAIL(std::string(result.message()));
}

TEST(CrossEntropyImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor logits = tests::normal({700, 50}, 1, at::kFloat);
  reference::Ids targets;
  for (Index n = 0; n < 700; ++n) targets.push_back(n % 7 ? n % 50 : -100);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto out = cross_entropy::forward(logits, tests::integers(targets), 600, 1e-3);
    return std::vector{out.loss, out.z_loss, out.lse,
                       cross_entropy::backward(logits.clone(), tests::integers(targets), out.lse, 600, 1e-3)};
  }));
}

TEST(CrossEntropyImpl, ConstraintsAreChecked) {
  const auto forward = [](reference::Shape shape, reference::Ids targets, double normalizer, double z) {
    return tests::refusal(
        [&] { cross_entropy::forward(at::ones(shape), tests::integers(targets), normalizer, z); });
  };
  EXPECT_EQ(forward({2, 3}, {2, -100}, 1, 0), "accepted");
  EXPECT_EQ(forward({2, 3}, {2}, 1, 0), "cross_entropy_c1");
  EXPECT_EQ(forward({2, 3}, {2, 3}, 1, 0), "cross_entropy_c2");
  EXPECT_EQ(forward({2, 3}, {2, -1}, 1, 0), "cross_entropy_c2");
  EXPECT_EQ(forward({2, 3}, {2, 1}, 0, 0), "cross_entropy_c3");
  EXPECT_EQ(forward({2, 3}, {2, 1}, 1, -1), "cross_entropy_c4");
  EXPECT_EQ(forward({2, 0}, {-100, -100}, 1, 0), "cross_entropy_c5");
}

}  // namespace
}  // namespace assay::impl
