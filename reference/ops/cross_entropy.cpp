#include "reference/ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"

namespace assay::reference::cross_entropy {

namespace {
template <class S>
spec::cross_entropy::Shape shape_of(const Tensor<S>& logits) {
  const Index V = logits.extent(-1);
  return {.N = V ? logits.size() / V : 0, .V = V};
}

template <class S>
S log_sum_exp(const Tensor<S>& logits, Index n, Index V) {
  using std::exp, std::log;
  S largest = logits[n * V];
  for (Index v = 1; v < V; ++v) largest = std::max(largest, logits[n * V + v]);
  S sum = 0;
  for (Index v = 0; v < V; ++v) sum += exp(logits[n * V + v] - largest);
  return largest + log(sum);
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& logits, const Ids& targets, double normalizer, double z_loss) {
  const auto [N, V] = shape_of(logits);
  spec::cross_entropy::check({.N = N, .V = V}, targets, normalizer, z_loss);

  Forward<S> out;
  out.lse = Tensor<S>({N});
  S sum = 0, sum_of_squares = 0;
  for (Index n = 0; n < N; ++n) {
    const S lse = out.lse[n] = log_sum_exp(logits, n, V);
    const Index target = targets[static_cast<std::size_t>(n)];
    if (target == spec::cross_entropy::ignore) continue;
    sum += lse - logits[n * V + target];
    sum_of_squares += lse * lse;
    ++out.valid;
  }
  out.cross_entropy = sum / S(normalizer);
  out.z_loss = S(z_loss) * sum_of_squares / S(normalizer);
  out.loss = out.cross_entropy + out.z_loss;
  return out;
}

template <class S>
Tensor<S> backward(double upstream, const Tensor<S>& logits, const Ids& targets, const Tensor<S>& lse,
                   double normalizer, double z_loss) {
  using std::exp;
  const auto [N, V] = shape_of(logits);
  spec::cross_entropy::check({.N = N, .V = V}, targets, normalizer, z_loss);

  Tensor<S> dlogits(logits.shape());
  const S per_token = S(upstream) / S(normalizer);
  for (Index n = 0; n < N; ++n) {
    const Index target = targets[static_cast<std::size_t>(n)];
    if (target == spec::cross_entropy::ignore) continue;
    const S scale = per_token * (S(1) + S(2) * S(z_loss) * lse(n));
    for (Index v = 0; v < V; ++v) dlogits[n * V + v] = exp(logits[n * V + v] - lse(n)) * scale;
    dlogits[n * V + target] -= per_token;
  }
  return dlogits;
}

template Forward<double> forward(const Tensor<double>&, const Ids&, double, double);
template Forward<Counted> forward(const Tensor<Counted>&, const Ids&, double, double);
template Tensor<double> backward(double, const Tensor<double>&, const Ids&, const Tensor<double>&, double,
                                 double);
template Tensor<Counted> backward(double, const Tensor<Counted>&, const Ids&, const Tensor<Counted>&, double,
                                  double);

}  // namespace assay::reference::cross_entropy
