#include "reference/ops/router.hpp"

#include <algorithm>
#include <cmath>

#include "reference/counted.hpp"
#include "reference/ops/linear.hpp"
#include "spec/ops/router/router.hpp"

namespace assay::reference::router {

namespace {
template <class S>
spec::router::Shape shape_of(const Tensor<S>& x) {
  const Index D = x.extent(-1);
  return {.N = D ? x.size() / D : 0, .D = D};
}

/// The `count` largest of `values` among indices that `allowed` holds, the largest first; of equal ones the
/// lower index.
template <class S>
Ids largest(const std::vector<S>& values, const std::vector<bool>& allowed, Index count) {
  Ids best;
  std::vector<bool> left = allowed;
  for (Index i = 0; i < count; ++i) {
    Index found = -1;
    for (std::size_t e = 0; e < values.size(); ++e)
      if (left[e] && (found < 0 || values[e] > values[static_cast<std::size_t>(found)]))
        found = static_cast<Index>(e);
    left[static_cast<std::size_t>(found)] = false;
    best.push_back(found);
  }
  return best;
}

/// Which experts lie in the active_groups best groups.
template <class S>
std::vector<bool> in_best_groups(const std::vector<S>& values, const spec::Experts& e) {
  if (e.groups == 1) return std::vector<bool>(values.size(), true);
  const auto of_group = [&](Index expert) { return expert / (e.count / e.groups); };
  std::vector<S> scores;
  for (Index group = 0; group < e.groups; ++group) {
    std::vector<bool> inside;
    for (Index expert = 0; expert < e.count; ++expert) inside.push_back(of_group(expert) == group);
    const Ids two = largest(values, inside, 2);
    scores.push_back(values[static_cast<std::size_t>(two[0])] + values[static_cast<std::size_t>(two[1])]);
  }
  const Ids best = largest(scores, std::vector<bool>(scores.size(), true), e.active_groups);
  std::vector<bool> inside;
  for (Index expert = 0; expert < e.count; ++expert)
    inside.push_back(std::find(best.begin(), best.end(), of_group(expert)) != best.end());
  return inside;
}

template <class S>
void softmax(const Tensor<S>& logits, Index n, Tensor<S>& scores) {
  using std::exp;
  const Index X = logits.extent(1);
  S most = logits(n, 0), sum = 0;
  for (Index e = 1; e < X; ++e) most = std::max(most, logits(n, e));
  for (Index e = 0; e < X; ++e) sum += scores(n, e) = exp(logits(n, e) - most);
  for (Index e = 0; e < X; ++e) scores(n, e) /= sum;
}

template <class S>
void sigmoid(const Tensor<S>& logits, Index n, Tensor<S>& scores) {
  using std::exp;
  for (Index e = 0; e < logits.extent(1); ++e) scores(n, e) = S(1) / (S(1) + exp(-logits(n, e)));
}

template <class S>
S sum_of_row(const Tensor<S>& scores, Index n) {
  S sum = 0;
  for (Index e = 0; e < scores.extent(1); ++e) sum += scores(n, e);
  return sum + S(spec::router::tiny);
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& weight, const Tensor<S>& bias,
                   const spec::Experts& e) {
  const auto shape = shape_of(x);
  spec::router::check(shape, e, weight.extent(0), weight.extent(1), bias.size());

  const Index N = shape.N, X = e.count, A = e.active;
  Forward<S> out;
  out.logits = linear::forward(x.reshaped({N, shape.D}), weight);
  out.scores = Tensor<S>({N, X});
  out.weights = Tensor<S>({N, A});
  out.t = Tensor<S>({N});
  for (Index n = 0; n < N; ++n) {
    if (e.scoring == spec::Scoring::softmax)
      softmax(out.logits, n, out.scores);
    else
      sigmoid(out.logits, n, out.scores);

    std::vector<S> by;
    for (Index expert = 0; expert < X; ++expert)
      by.push_back(e.router_bias ? out.scores(n, expert) + bias(expert) : out.scores(n, expert));
    const Ids chosen = largest(by, in_best_groups(by, e), A);
    out.chosen.insert(out.chosen.end(), chosen.begin(), chosen.end());

    out.t(n) = 1;
    if (e.renormalised) {
      S sum = 0;
      for (const Index expert : chosen) sum += out.scores(n, expert);
      out.t(n) = sum + S(spec::router::tiny);
    }
    for (Index a = 0; a < A; ++a) {
      const S scaled = S(e.scaling_factor) * out.scores(n, chosen[static_cast<std::size_t>(a)]);
      out.weights(n, a) = e.renormalised ? scaled / out.t(n) : scaled;
    }
  }
  return out;
}

template <class S>
Tensor<S> probabilities(const Tensor<S>& scores, const spec::Experts& experts) {
  Tensor<S> p = scores;
  if (experts.scoring == spec::Scoring::softmax) return p;
  for (Index n = 0; n < p.extent(0); ++n) {
    const S sum = sum_of_row(scores, n);
    for (Index e = 0; e < p.extent(1); ++e) p(n, e) /= sum;
  }
  return p;
}

namespace {
/// Adds to ds what reaches the scores from their probabilities.
template <class S>
void add_from_probabilities(const Tensor<S>& dp, const Tensor<S>& s, const spec::Experts& experts,
                            Tensor<S>& ds) {
  const Index N = ds.extent(0), X = ds.extent(1);
  for (Index n = 0; n < N; ++n) {
    if (experts.scoring == spec::Scoring::softmax) {
      for (Index e = 0; e < X; ++e) ds(n, e) += dp(n, e);
      continue;
    }
    const S sum = sum_of_row(s, n);
    S mean = 0;
    for (Index e = 0; e < X; ++e) mean += dp(n, e) * (s(n, e) / sum);
    for (Index e = 0; e < X; ++e) ds(n, e) += (dp(n, e) - mean) / sum;
  }
}

/// ds through the scores' function.
template <class S>
Tensor<S> through_scores(const Tensor<S>& ds, const Tensor<S>& s, const spec::Experts& experts) {
  const Index N = ds.extent(0), X = ds.extent(1);
  Tensor<S> dlogits({N, X});
  for (Index n = 0; n < N; ++n) {
    if (experts.scoring == spec::Scoring::sigmoid) {
      for (Index e = 0; e < X; ++e) dlogits(n, e) = ds(n, e) * s(n, e) * (S(1) - s(n, e));
      continue;
    }
    S mean = 0;
    for (Index e = 0; e < X; ++e) mean += s(n, e) * ds(n, e);
    for (Index e = 0; e < X; ++e) dlogits(n, e) = s(n, e) * (ds(n, e) - mean);
  }
  return dlogits;
}
}  // namespace

template <class S>
Backward<S> backward(const Tensor<S>& dweights, const Tensor<S>& dprobabilities, const Tensor<S>& dlogits,
                     const Forward<S>& saved, const Tensor<S>& x, const Tensor<S>& weight,
                     const spec::Experts& e) {
  const auto shape = shape_of(x);
  const Index N = shape.N, X = e.count, A = e.active;
  spec::router::check(shape, e, weight.extent(0), weight.extent(1), e.router_bias ? X : 0);
  spec::router::check_upstream(shape, e, dweights.size(), dprobabilities.size(), dlogits.size());

  Tensor<S> ds({N, X});
  for (Index n = 0; n < N; ++n) {
    S mean = 0;
    if (e.renormalised)
      for (Index a = 0; a < A; ++a) mean += dweights[n * A + a] * saved.weights(n, a);
    for (Index a = 0; a < A; ++a) {
      const S scaled = S(e.scaling_factor) * dweights[n * A + a];
      ds(n, saved.chosen[static_cast<std::size_t>(n * A + a)]) +=
          e.renormalised ? (scaled - mean) / saved.t(n) : scaled;
    }
  }
  if (dprobabilities.size() > 0) add_from_probabilities(dprobabilities, saved.scores, e, ds);
  Tensor<S> dl = through_scores(ds, saved.scores, e);
  if (dlogits.size() > 0) dl.flat() += dlogits.flat();

  const auto linear = linear::backward(dl, x.reshaped({N, shape.D}), weight);
  return {linear.dx.reshaped(x.shape()), linear.dweight};
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                 const spec::Experts&);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                  const spec::Experts&);
template Tensor<double> probabilities(const Tensor<double>&, const spec::Experts&);
template Tensor<Counted> probabilities(const Tensor<Counted>&, const spec::Experts&);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Forward<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const spec::Experts&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Forward<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const spec::Experts&);

}  // namespace assay::reference::router
