#include "reference/ops/permute.hpp"

#include "reference/counted.hpp"
#include "spec/ops/permute/permute.hpp"

namespace assay::reference::permute {

Plan plan(const Ids& chosen, Index N, Index A, Index X, std::optional<double> capacity_factor, Index groups) {
  const spec::permute::Shape shape{.N = N, .A = A, .X = X};
  spec::permute::check(shape, chosen, capacity_factor);
  spec::permute::check_groups(N, groups);
  const Index of_group = N / groups;
  const Index most =
      capacity_factor ? spec::permute::capacity({.N = of_group, .A = A, .X = X}, *capacity_factor) : N;

  Plan out{.N = N, .A = A, .offsets = {0}, .tokens = {}, .slots = {}, .rows = Ids(chosen.size(), -1)};
  for (Index expert = 0; expert < X; ++expert) {
    Index taken = 0;
    for (Index n = 0; n < N; ++n) {
      if (n % of_group == 0) taken = 0;
      for (Index a = 0; a < A; ++a) {
        const auto choice = static_cast<std::size_t>(n * A + a);
        if (chosen[choice] != expert || taken == most) continue;
        out.rows[choice] = out.R();
        out.tokens.push_back(n);
        out.slots.push_back(a);
        ++taken;
      }
    }
    out.offsets.push_back(out.R());
  }
  if (N > 0) out.dropped = static_cast<double>(N * A - out.R()) / static_cast<double>(N * A);
  return out;
}

namespace {
Index row_of(const Plan& plan, Index n, Index a) {
  return plan.rows[static_cast<std::size_t>(n * plan.A + a)];
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x, const Plan& plan) {
  const Index D = x.extent(-1);
  spec::permute::check_entries("x", x.size(), plan.N * D, D);
  Tensor<S> y({plan.R(), D});
  for (Index r = 0; r < plan.R(); ++r)
    for (Index d = 0; d < D; ++d) y(r, d) = x[plan.tokens[static_cast<std::size_t>(r)] * D + d];
  return y;
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Plan& plan) {
  const Index D = dy.extent(-1);
  spec::permute::check_entries("dy", dy.size(), plan.R() * D, D);
  Tensor<S> dx({plan.N, D});
  for (Index n = 0; n < plan.N; ++n)
    for (Index a = 0; a < plan.A; ++a)
      if (const Index r = row_of(plan, n, a); r >= 0)
        for (Index d = 0; d < D; ++d) dx(n, d) += dy(r, d);
  return dx;
}

template <class S>
Tensor<S> unpermute(const Tensor<S>& z, const Tensor<S>& weights, const Plan& plan) {
  const Index D = z.extent(-1);
  spec::permute::check_entries("z", z.size(), plan.R() * D, D);
  spec::permute::check_entries("weights", weights.size(), plan.N * plan.A, D);
  Tensor<S> y({plan.N, D});
  for (Index n = 0; n < plan.N; ++n)
    for (Index a = 0; a < plan.A; ++a)
      if (const Index r = row_of(plan, n, a); r >= 0)
        for (Index d = 0; d < D; ++d) y(n, d) += weights(n, a) * z(r, d);
  return y;
}

template <class S>
UnpermuteBackward<S> unpermute_backward(const Tensor<S>& dy, const Tensor<S>& z, const Tensor<S>& weights,
                                        const Plan& plan) {
  const Index D = z.extent(-1);
  spec::permute::check_entries("dy", dy.size(), plan.N * D, D);
  spec::permute::check_entries("z", z.size(), plan.R() * D, D);
  spec::permute::check_entries("weights", weights.size(), plan.N * plan.A, D);
  UnpermuteBackward<S> gradient{Tensor<S>(z.shape()), Tensor<S>(weights.shape())};
  for (Index n = 0; n < plan.N; ++n)
    for (Index a = 0; a < plan.A; ++a)
      if (const Index r = row_of(plan, n, a); r >= 0)
        for (Index d = 0; d < D; ++d) {
          gradient.dz(r, d) = weights(n, a) * dy[n * D + d];
          gradient.dweights(n, a) += dy[n * D + d] * z(r, d);
        }
  return gradient;
}

template Tensor<double> forward(const Tensor<double>&, const Plan&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Plan&);
template Tensor<double> backward(const Tensor<double>&, const Plan&);
template Tensor<Counted> backward(const Tensor<Counted>&, const Plan&);
template Tensor<double> unpermute(const Tensor<double>&, const Tensor<double>&, const Plan&);
template Tensor<Counted> unpermute(const Tensor<Counted>&, const Tensor<Counted>&, const Plan&);
template UnpermuteBackward<double> unpermute_backward(const Tensor<double>&, const Tensor<double>&,
                                                      const Tensor<double>&, const Plan&);
template UnpermuteBackward<Counted> unpermute_backward(const Tensor<Counted>&, const Tensor<Counted>&,
                                                       const Tensor<Counted>&, const Plan&);

}  // namespace assay::reference::permute
