#include "reference/model/experts.hpp"

#include "reference/counted.hpp"
#include "reference/matrices.hpp"
#include "reference/ops/grouped_linear.hpp"
#include "spec/model/inventory.hpp"

namespace assay::reference::experts {

namespace {
using spec::Role;

/// The parameters of one block's mixture, found by what they are: their names depend on the family.
template <class S>
class Weights {
 public:
  Weights(const Parameters<S>& parameters, Index layer, const spec::ModelSpec& model)
      : parameters_(parameters) {
    for (const spec::Parameter& parameter : spec::inventory(model).parameters)
      if (parameter.block == layer + 1) names_[parameter.role].push_back(parameter.name);
  }

  const std::vector<std::string>& names(Role role) const { return names_.at(role); }
  const Tensor<S>& one(Role role) const { return parameters_.at(names(role).front()); }
  Tensor<S> router_bias(const spec::Experts& e) const {
    return e.router_bias ? one(Role::router_bias) : Tensor<S>();
  }

  /// gate_0, up_0, gate_1, ... as [X, 2G, D], or the downs as [X, D, G].
  Tensor<S> of_experts(const std::vector<Role>& roles) const {
    std::vector<Tensor<S>> matrices;
    const auto X = names(roles.front()).size();
    for (std::size_t e = 0; e < X; ++e)
      for (const Role role : roles) matrices.push_back(parameters_.at(names(role)[e]));
    const Tensor<S> all = stacked<S>(matrices);
    return all.reshaped({static_cast<Index>(X), all.extent(0) / static_cast<Index>(X), all.extent(1)});
  }
  shared_expert::Weights<S> shared() const {
    return {stacked<S>({one(Role::shared_gate), one(Role::shared_up)}), one(Role::shared_down)};
  }

 private:
  const Parameters<S>& parameters_;
  std::map<Role, std::vector<std::string>> names_;
};

const std::vector<Role> into{Role::expert_gate, Role::expert_up}, out_of{Role::expert_down};

/// Adds the gradient of a stack of experts' matrices, matrix by matrix.
template <class S>
void add_of_experts(const Tensor<S>& gradient, const std::vector<Role>& roles, const Weights<S>& weights,
                    Parameters<S>& gradients) {
  const Index X = gradient.extent(0), height = gradient.extent(1) / static_cast<Index>(roles.size());
  const Tensor<S> all = gradient.reshaped({X * gradient.extent(1), gradient.extent(2)});
  Index row = 0;
  for (Index e = 0; e < X; ++e)
    for (const Role role : roles) {
      add_gradient(gradients, weights.names(role)[static_cast<std::size_t>(e)], rows(all, row, height));
      row += height;
    }
}

template <class S>
Tensor<S> by_rows(const Tensor<S>& x) {
  return x.reshaped({x.size() / x.extent(-1), x.extent(-1)});
}
/// The rows of x [R, C] times the weights [N, A] of their choices.
template <class S>
Tensor<S> times_weights(Tensor<S> x, const Tensor<S>& weights, const permute::Plan& plan) {
  for (Index n = 0; n < plan.N; ++n)
    for (Index a = 0; a < plan.A; ++a)
      if (const Index r = plan.rows[static_cast<std::size_t>(n * plan.A + a)]; r >= 0)
        for (Index c = 0; c < x.extent(1); ++c) x(r, c) = x(r, c) * weights(n, a);
  return x;
}
template <class S>
Tensor<S> ones(const Tensor<S>& like) {
  Tensor<S> out(like.shape());
  for (Index i = 0; i < out.size(); ++i) out[i] = 1;
  return out;
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& x, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, std::optional<double> capacity_factor, Recipe recipe) {
  const spec::Experts& e = *model.experts;
  const Weights<S> weights(parameters, layer, model);
  const auto activation = spec::swiglu::activation_of(model.mlp);
  const Tensor<S> tokens = by_rows(x);

  Forward<S> s;
  s.router = router::forward(tokens, weights.one(Role::router), weights.router_bias(e), e);
  const Index sequences = x.rank() > 2 ? x.extent(0) : 1;
  s.plan = permute::plan(s.router.chosen, tokens.extent(0), e.active, e.count, capacity_factor, sequences);
  s.rows = permute::forward(tokens, s.plan);
  const Tensor<S> gate_up = grouped_linear::forward(s.rows, weights.of_experts(into), s.plan.offsets, recipe);
  s.gate = columns(gate_up, 0, e.width);
  s.up = columns(gate_up, e.width, e.width);
  s.activated = swiglu::forward(s.gate, s.up, activation);
  if (recipe == Recipe::none) {
    s.down = grouped_linear::forward(s.activated, weights.of_experts(out_of), s.plan.offsets);
    s.y = permute::unpermute(s.down, s.router.weights, s.plan);
  } else {
    s.weighted = times_weights(s.activated, s.router.weights, s.plan);
    s.down = grouped_linear::forward(s.weighted, weights.of_experts(out_of), s.plan.offsets, recipe);
    s.y = permute::unpermute(s.down, ones(s.router.weights), s.plan);
  }
  if (e.shared_width > 0) {
    s.shared = shared_expert::forward(tokens, s.y, weights.shared(), activation);
    s.y = s.shared.y;
  }
  s.y = s.y.reshaped(x.shape());
  return s;
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Upstream<S>& auxiliary, const Forward<S>& s, const Tensor<S>& x,
                   const Parameters<S>& parameters, Index layer, const spec::ModelSpec& model,
                   Parameters<S>& gradients, Recipe recipe) {
  const spec::Experts& e = *model.experts;
  const Weights<S> weights(parameters, layer, model);
  const auto activation = spec::swiglu::activation_of(model.mlp);
  const Tensor<S> tokens = by_rows(x), dtokens = by_rows(dy);

  const bool exact = recipe == Recipe::none;
  auto routed =
      permute::unpermute_backward(dtokens, s.down, exact ? s.router.weights : ones(s.router.weights), s.plan);
  auto down = grouped_linear::backward(routed.dz, exact ? s.activated : s.weighted,
                                       weights.of_experts(out_of), s.plan.offsets, recipe);
  if (!exact) {
    for (Index n = 0; n < s.plan.N; ++n)
      for (Index a = 0; a < s.plan.A; ++a) {
        routed.dweights(n, a) = 0;
        if (const Index r = s.plan.rows[static_cast<std::size_t>(n * s.plan.A + a)]; r >= 0)
          for (Index c = 0; c < e.width; ++c) routed.dweights(n, a) += down.dx(r, c) * s.activated(r, c);
      }
    down.dx = times_weights(down.dx, s.router.weights, s.plan);
  }
  const auto gated = swiglu::backward(down.dx, s.gate, s.up, activation);
  const Tensor<S> dgate_up = beside<S>({gated.dgate, gated.dup}, 1);
  const auto gate_up =
      grouped_linear::backward(dgate_up, s.rows, weights.of_experts(into), s.plan.offsets, recipe);
  add_of_experts(down.dweights, out_of, weights, gradients);
  add_of_experts(gate_up.dweights, into, weights, gradients);

  Tensor<S> dx = permute::backward(gate_up.dx, s.plan);
  const auto choice = router::backward(routed.dweights, auxiliary.dprobabilities, auxiliary.dlogits, s.router,
                                       tokens, weights.one(Role::router), e);
  add_gradient(gradients, weights.names(Role::router).front(), choice.dweight);
  dx.flat() += choice.dx.flat();
  if (e.shared_width > 0) {
    const auto shared = shared_expert::backward(dtokens, s.shared, tokens, weights.shared(), activation);
    const Index inner = e.shared_width;
    add_gradient(gradients, weights.names(Role::shared_gate).front(), rows(shared.dgate_up, 0, inner));
    add_gradient(gradients, weights.names(Role::shared_up).front(), rows(shared.dgate_up, inner, inner));
    add_gradient(gradients, weights.names(Role::shared_down).front(), shared.ddown);
    dx.flat() += shared.dx.flat();
  }
  return dx.reshaped(x.shape());
}

template Forward<double> forward(const Tensor<double>&, const Parameters<double>&, Index,
                                 const spec::ModelSpec&, std::optional<double>, Recipe);
template Forward<Counted> forward(const Tensor<Counted>&, const Parameters<Counted>&, Index,
                                  const spec::ModelSpec&, std::optional<double>, Recipe);
template Tensor<double> backward(const Tensor<double>&, const Upstream<double>&, const Forward<double>&,
                                 const Tensor<double>&, const Parameters<double>&, Index,
                                 const spec::ModelSpec&, Parameters<double>&, Recipe);
template Tensor<Counted> backward(const Tensor<Counted>&, const Upstream<Counted>&, const Forward<Counted>&,
                                  const Tensor<Counted>&, const Parameters<Counted>&, Index,
                                  const spec::ModelSpec&, Parameters<Counted>&, Recipe);

}  // namespace assay::reference::experts
