#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/router/router.hpp"
#include "spec/ops/router.hpp"

namespace assay::impl::router::cpu {

using spec::Scoring;

namespace {

/// The logits of a token become its scores.
template <class M>
void score(M* row, std::int64_t X, Scoring scoring) {
  if (scoring == Scoring::sigmoid) {
    for (std::int64_t e = 0; e < X; ++e) row[e] = M(1) / (M(1) + std::exp(-row[e]));
    return;
  }
  const M top = *std::max_element(row, row + X);
  M sum = 0;
  for (std::int64_t e = 0; e < X; ++e) sum += row[e] = std::exp(row[e] - top);
  for (std::int64_t e = 0; e < X; ++e) row[e] /= sum;
}

/// The best A of a token's scores. A NaN is never better, so that every token has A experts.
template <class M>
void choose(const M* scores, std::int64_t X, std::int64_t A, std::int32_t* experts) {
  for (std::int64_t a = 0; a < A; ++a) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < X; ++e) {
      if (std::find(experts, experts + a, e) != experts + a) continue;
      if (best < 0 || scores[e] > scores[best]) best = e;
    }
    experts[a] = best;
  }
}

}  // namespace

Choice forward(at::Tensor logits, const spec::Experts& how) {
  const std::int64_t N = logits.size(0), X = how.count, A = how.active;
  Choice out{.scores = logits,
             .experts = at::empty({N, A}, logits.options().dtype(at::kInt)),
             .weights = at::empty({N, A}, logits.options())};
  impl::cpu::with_element(logits.scalar_type(), "router", [&](auto element) {
    using M = impl::cpu::Math<decltype(element)>;
    auto* scores = static_cast<M*>(logits.data_ptr());
    auto* weights = static_cast<M*>(out.weights.data_ptr());
    auto* experts = out.experts.data_ptr<std::int32_t>();
    impl::cpu::for_rows(N, X * (A + 4), [&](std::int64_t n) {
      M* row = scores + n * X;
      score(row, X, how.scoring);
      choose(row, X, A, experts + n * A);
      M sum = 0;
      for (std::int64_t a = 0; a < A; ++a) sum += weights[n * A + a] = row[experts[n * A + a]];
      const M factor = M(how.scaling_factor) / (how.renormalised ? sum + M(spec::router::tiny) : M(1));
      for (std::int64_t a = 0; a < A; ++a) weights[n * A + a] *= factor;
    });
  });
  return out;
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type) {
  const std::int64_t N = dweights.size(0), X = how.count, A = how.active;
  at::Tensor dlogits = at::empty({N, X}, dweights.options().dtype(type));
  impl::cpu::with_element(type, "router_backward", [&](auto element) {
    using T = decltype(element);
    using M = impl::cpu::Math<T>;
    const auto* upstream = static_cast<const M*>(dweights.const_data_ptr());
    const auto* all_scores = static_cast<const M*>(choice.scores.const_data_ptr());
    const auto* weights = static_cast<const M*>(choice.weights.const_data_ptr());
    const auto* experts = choice.experts.const_data_ptr<std::int32_t>();
    auto* out = dlogits.data_ptr<T>();
    impl::cpu::for_rows(N, 4 * X, [&](std::int64_t n) {
      const M *scores = all_scores + n * X, *w = weights + n * A, *dw = upstream + n * A;
      const std::int32_t* chosen = experts + n * A;
      // weight = factor score / sum, or factor score: the gradient of a chosen score.
      M sum = 0, along = 0;
      for (std::int64_t a = 0; a < A; ++a) sum += scores[chosen[a]], along += dw[a] * w[a];
      sum += M(spec::router::tiny);
      const M factor = M(how.scaling_factor);
      const auto of_score = [&](std::int64_t a) {
        return how.renormalised ? (factor * dw[a] - along) / sum : factor * dw[a];
      };
      M inner = 0;  // of softmax
      for (std::int64_t a = 0; a < A; ++a) inner += of_score(a) * scores[chosen[a]];
      for (std::int64_t e = 0; e < X; ++e)
        out[n * X + e] = T(how.scoring == Scoring::softmax ? -inner * scores[e] : M(0));
      for (std::int64_t a = 0; a < A; ++a) {
        const M p = scores[chosen[a]], d = of_score(a);
        out[n * X + chosen[a]] = T(how.scoring == Scoring::softmax ? p * (d - inner) : d * p * (M(1) - p));
      }
    });
  });
  return dlogits;
}

}  // namespace assay::impl::router::cpu
