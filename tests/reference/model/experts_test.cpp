// labels: unit property
#include "reference/model/experts.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/linear.hpp"
#include "reference/ops/swiglu.hpp"
#include "spec/model/inventory.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::experts_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

/// The mixture of a drawn model's last sparse layer, with input, upstreams and parameters.
struct Case {
  explicit Case(std::uint64_t seed, Index tokens = 5) : model(tests::routed_model(seed)) {
    for (Index l = 0; l < model.layers; ++l)
      if (model.sparse(l)) layer = l;
    parameters = tests::drawn_parameters(model, seed);
    const Index X = model.experts->count;
    x = tests::normal({1, tokens, model.width}, seed + 1);
    dy = tests::normal(x.shape(), seed + 2);
    auxiliary = {tests::normal({tokens, X}, seed + 3), tests::normal({tokens, X}, seed + 4)};
  }

  experts::Forward<double> forward(std::optional<double> factor = std::nullopt) const {
    return experts::forward(x, parameters, layer, model, factor);
  }

  spec::ModelSpec model;
  Index layer = 0;
  Parameters<double> parameters;
  Tensor<double> x, dy;
  experts::Upstream<double> auxiliary;
};

/// With the losses that the upstreams stand for.
double loss(const Case& c, const experts::Forward<double>& at) {
  return tests::dot(c.dy, at.y) +
         tests::dot(c.auxiliary.dprobabilities, router::probabilities(at.router.scores, *c.model.experts)) +
         tests::dot(c.auxiliary.dlogits, at.router.logits);
}

/// Whether a central difference at every entry stayed with the choice at the point itself; a choice that a
/// step changes has no derivative there.
bool matches_central_difference(Case c, std::optional<double> factor) {
  const auto saved = c.forward(factor);
  Parameters<double> gradients;
  const auto dx = experts::backward(c.dy, c.auxiliary, saved, c.x, c.parameters, c.layer, c.model, gradients);
  bool stays = true;
  const auto check = [&](Tensor<double>& moved, const Tensor<double>& gradient, const std::string& name) {
    const Tensor<double> original = moved;
    const auto expected = tests::central_difference(
        [&](const Tensor<double>& at) {
          moved = at;
          const auto now = c.forward(factor);
          stays = stays && now.router.chosen == saved.router.chosen;
          return loss(c, now);
        },
        original, 1e-4);
    moved = original;
    // 1e-7 of the largest, or of 1 where a tensor's gradient is small beside the loss it is a difference of.
    double largest = 1;
    for (const double entry : expected.data) largest = std::max(largest, std::abs(entry));
    const auto result =
        tests::close(values(gradient), expected,
                     Allowed::elementwise(std::vector<double>(expected.data.size(), 1e-7 * largest)), true);
    if (stays) {
      EXPECT_TRUE(result) << name << " of " << tests::describe(c.model);
    }
  };
  check(c.x, dx, "x");
  for (const auto& [name, gradient] : gradients) check(c.parameters.at(name), gradient, name);
  return stays;
}

TEST(ExpertsReference, BackwardMatchesCentralDifferenceForInputAndEveryParameter) {
  for (const std::optional<double>& factor :
       {std::optional<double>(), std::optional(0.6), std::optional(1.0)}) {
    int compared = 0;
    for (std::uint64_t seed = 1; compared < 2; ++seed)
      compared += matches_central_difference(Case(seed, 4), factor) ? 1 : 0;
  }
}

TEST(ExpertsReference, EveryLearnedParameterOfTheMixtureHasAGradient) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(tests::describe(c.model));
    Parameters<double> gradients;
    experts::backward(c.dy, {}, c.forward(), c.x, c.parameters, c.layer, c.model, gradients);
    std::size_t learned = 0;
    for (const auto& parameter : spec::inventory(c.model).parameters) {
      const std::string& name = parameter.name;
      const bool of_mixture = parameter.block == c.layer + 1 && name.find("self_attn") == std::string::npos &&
                              parameter.role != spec::Role::norm;
      if (!of_mixture || !parameter.learned()) continue;
      ++learned;
      EXPECT_EQ(gradients.at(name).shape(), parameter.shape) << name;
    }
    EXPECT_EQ(gradients.size(), learned);
  }
}

/// The slow way round: each token alone, each of its experts as a dense MLP.
RC_GTEST_PROP(ExpertsReference, IsTheWeightedSumOfEachTokensExperts, (std::uint64_t seed)) {
  const Case c(seed % 100000);
  const spec::Experts& e = *c.model.experts;
  const auto out = c.forward();
  const auto activation = spec::swiglu::activation_of(c.model.mlp);
  std::map<spec::Role, std::vector<std::string>> names;
  for (const auto& parameter : spec::inventory(c.model).parameters)
    if (parameter.block == c.layer + 1) names[parameter.role].push_back(parameter.name);
  const auto mlp = [&](const Tensor<double>& x, spec::Role gate, spec::Role up, spec::Role down, Index i) {
    const auto weight = [&](spec::Role role) -> const Tensor<double>& {
      return c.parameters.at(names.at(role)[static_cast<std::size_t>(i)]);
    };
    const auto inner =
        swiglu::forward(linear::forward(x, weight(gate)), linear::forward(x, weight(up)), activation);
    return linear::forward(inner, weight(down));
  };
  const Index N = c.x.extent(1), D = c.model.width;
  Tensor<double> expected(c.x.shape());
  for (Index n = 0; n < N; ++n) {
    Tensor<double> token({1, D}), sum({1, D});
    token.flat() = c.x.flat().segment(n * D, D);
    for (Index a = 0; a < e.active; ++a)
      sum.flat() += out.router.weights(n, a) *
                    mlp(token, spec::Role::expert_gate, spec::Role::expert_up, spec::Role::expert_down,
                        out.router.chosen[static_cast<std::size_t>(n * e.active + a)])
                        .flat();
    if (e.shared_width > 0)
      sum.flat() +=
          mlp(token, spec::Role::shared_gate, spec::Role::shared_up, spec::Role::shared_down, 0).flat();
    expected.flat().segment(n * D, D) = sum.flat();
  }
  ASSAY_RC_CLOSE(values(out.y), values(expected), Allowed::relative(gamma(400, u)));
}

/// A token that every expert drops keeps the shared expert alone; its router weights have no gradient.
TEST(ExpertsReference, ADroppedTokenContributesNothing) {
  Case c(3, 6);
  c.model.experts = spec::Experts{.count = 2, .active = 1, .width = 3};
  c.model.family = spec::Family::mixtral;
  c.layer = 0;
  c.parameters = tests::drawn_parameters(c.model, 1);
  // One expert wins every token: its capacity is half of them.
  Tensor<double>& router = c.parameters.at("model.layers.0.block_sparse_moe.gate.weight");
  for (Index d = 0; d < c.model.width; ++d) router(1, d) = router(0, d);
  const auto out = c.forward(1.0);
  EXPECT_EQ(out.plan.offsets, (Ids{0, 3, 3}));
  EXPECT_EQ(out.plan.dropped, 0.5);
  Parameters<double> gradients;
  const auto dx = experts::backward(c.dy, {}, out, c.x, c.parameters, 0, c.model, gradients);
  for (Index n = 3; n < 6; ++n)
    for (Index d = 0; d < c.model.width; ++d) {
      EXPECT_EQ(out.y(0, n, d), 0);
      EXPECT_EQ(dx(0, n, d), 0);
    }
  for (const char* matrix : {"w1", "w2", "w3"}) {
    const auto gradient =
        gradients.at("model.layers.0.block_sparse_moe.experts.1." + std::string(matrix) + ".weight");
    EXPECT_TRUE((gradient.flat() == 0.0).all()) << matrix;
  }
}

}  // namespace
}  // namespace assay::reference::experts_test
