#include "reference/ops/load_balancing.hpp"

#include <algorithm>
#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"

namespace assay::reference::load_balancing {

namespace {
template <class S>
spec::load_balancing::Shape checked(Index N, const Tensor<S>& f, Index active, double normalizer) {
  const spec::load_balancing::Shape shape{.N = N, .X = f.extent(1), .G = f.extent(0)};
  std::vector<double> shares;
  for (Index i = 0; i < f.size(); ++i) shares.push_back(static_cast<double>(f[i]));
  spec::load_balancing::check(shape, active, shares, normalizer);
  return shape;
}
}  // namespace

template <class S>
Tensor<S> shares(const Ids& chosen, Index A, Index X, Index G) {
  const auto choices = static_cast<Index>(chosen.size());
  spec::load_balancing::check({.N = choices / A, .X = X, .G = G}, A,
                              std::vector<double>(static_cast<std::size_t>(G * X)), 1);
  const Index of_group = choices / G;
  Tensor<S> f({G, X});
  for (Index g = 0; g < G; ++g)
    for (Index e = 0; e < X; ++e) {
      Index count = 0;
      for (Index i = g * of_group; i < (g + 1) * of_group; ++i)
        count += chosen[static_cast<std::size_t>(i)] == e ? 1 : 0;
      f(g, e) = S(static_cast<double>(count)) / S(static_cast<double>(std::max<Index>(of_group, 1)));
    }
  return f;
}

template <class S>
S forward(const Tensor<S>& p, const Tensor<S>& f, Index active, double normalizer) {
  const auto [N, X, G] = checked(p.extent(0), f, active, normalizer);
  S sum = 0;
  for (Index n = 0; n < N; ++n)
    for (Index e = 0; e < X; ++e) sum += f(n / (N / G), e) * p(n, e);
  return S(static_cast<double>(X)) / S(normalizer) * sum;
}

template <class S>
Tensor<S> backward(double upstream, const Tensor<S>& f, Index N, Index active, double normalizer) {
  const auto [rows, X, G] = checked(N, f, active, normalizer);
  const S scale = S(upstream) * S(static_cast<double>(X)) / S(normalizer);
  Tensor<S> of_group({G, X}), dp({N, X});
  for (Index i = 0; i < of_group.size(); ++i) of_group[i] = scale * f[i];
  for (Index n = 0; n < N; ++n)
    for (Index e = 0; e < X; ++e) dp(n, e) = of_group(n / (N / G), e);
  return dp;
}

template <class S>
ZLoss<S> z_forward(const Tensor<S>& logits, double normalizer) {
  using std::exp, std::log;
  const Index N = logits.extent(0), X = logits.extent(1);
  spec::load_balancing::check_z(N, X, normalizer);
  ZLoss<S> out{.loss = 0, .lse = Tensor<S>({N})};
  S sum = 0;
  for (Index n = 0; n < N; ++n) {
    S most = logits(n, 0), terms = 0;
    for (Index e = 1; e < X; ++e) most = std::max(most, logits(n, e));
    for (Index e = 0; e < X; ++e) terms += exp(logits(n, e) - most);
    out.lse(n) = most + log(terms);
    sum += out.lse(n) * out.lse(n);
  }
  out.loss = sum / S(normalizer);
  return out;
}

template <class S>
Tensor<S> z_backward(double upstream, const Tensor<S>& logits, const Tensor<S>& lse, double normalizer) {
  using std::exp;
  const Index N = logits.extent(0), X = logits.extent(1);
  spec::load_balancing::check_z(N, X, normalizer);
  const S scale = S(upstream) * S(2) / S(normalizer);
  Tensor<S> dlogits(logits.shape());
  for (Index n = 0; n < N; ++n) {
    const S of_row = scale * lse(n);
    for (Index e = 0; e < X; ++e) dlogits(n, e) = of_row * exp(logits(n, e) - lse(n));
  }
  return dlogits;
}

template Tensor<double> shares(const Ids&, Index, Index, Index);
template Tensor<Counted> shares(const Ids&, Index, Index, Index);
template double forward(const Tensor<double>&, const Tensor<double>&, Index, double);
template Counted forward(const Tensor<Counted>&, const Tensor<Counted>&, Index, double);
template Tensor<double> backward(double, const Tensor<double>&, Index, Index, double);
template Tensor<Counted> backward(double, const Tensor<Counted>&, Index, Index, double);
template ZLoss<double> z_forward(const Tensor<double>&, double);
template ZLoss<Counted> z_forward(const Tensor<Counted>&, double);
template Tensor<double> z_backward(double, const Tensor<double>&, const Tensor<double>&, double);
template Tensor<Counted> z_backward(double, const Tensor<Counted>&, const Tensor<Counted>&, double);

}  // namespace assay::reference::load_balancing
