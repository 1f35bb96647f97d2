#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/router/router.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/ops/router/router.hpp"

namespace assay::impl::router::cpu {

using spec::Scoring;

namespace {

/// The logits of a token become its scores. Returns the logits' lse.
template <class M>
M score(M* row, std::int64_t X, Scoring scoring) {
  const M top = *std::max_element(row, row + X);
  M sum = 0;
  if (scoring == Scoring::sigmoid) {
    for (std::int64_t e = 0; e < X; ++e) {
      sum += std::exp(row[e] - top);
      row[e] = M(1) / (M(1) + std::exp(-row[e]));
    }
  } else {
    for (std::int64_t e = 0; e < X; ++e) sum += row[e] = std::exp(row[e] - top);
    for (std::int64_t e = 0; e < X; ++e) row[e] /= sum;
  }
  return top + std::log(sum);
}

/// What probabilities are scores over.
template <class M>
M sum_of_scores(const M* row, std::int64_t X, Scoring scoring) {
  if (scoring == Scoring::softmax) return 1;
  M sum = 0;
  for (std::int64_t e = 0; e < X; ++e) sum += row[e];
  return sum + M(spec::router::tiny);
}

at::Tensor counts_of(const at::Tensor& experts, std::int64_t X, std::int64_t groups) {
  const std::int64_t choices = experts.numel() / groups;
  at::Tensor counts = at::zeros({groups, X}, experts.options());
  auto* count = counts.data_ptr<std::int32_t>();
  const auto* expert = experts.const_data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i < experts.numel(); ++i) ++count[i / choices * X + expert[i]];
  return counts;
}

/// The `count` best of the indices below `size` that are `allowed`, the best first; of equal values the lower
/// index. With NaNs among them as many are found; which ones is not defined.
template <class Value, class Allowed>
void best(std::int64_t size, std::int64_t count, const Value& value, const Allowed& allowed,
          std::int32_t* found) {
  for (std::int64_t a = 0; a < count; ++a) {
    std::int32_t top = -1;
    for (std::int32_t i = 0; i < size; ++i) {
      if (!allowed(i) || std::find(found, found + a, i) != found + a) continue;
      if (top < 0 || value(i) > value(top)) top = i;
    }
    found[a] = top;
  }
}

/// The experts of a token, by its scores and the bias [X], null without one.
template <class M>
void choose(const M* scores, const M* bias, const spec::Experts& how, std::int32_t* experts) {
  const auto value = [&](std::int32_t e) { return bias ? scores[e] + bias[e] : scores[e]; };
  const auto any = [](std::int32_t) { return true; };
  if (how.groups == 1) return best(how.count, how.active, value, any, experts);
  const auto size = static_cast<std::int32_t>(how.count / how.groups);
  std::vector<M> of_group(static_cast<std::size_t>(how.groups));  // the sum of its two best
  for (std::int32_t g = 0; g < how.groups; ++g) {
    M first = -std::numeric_limits<M>::infinity(), second = first;
    for (std::int32_t e = g * size; e < (g + 1) * size; ++e) {
      const M v = value(e);
      if (v > first)
        second = first, first = v;
      else if (v > second)
        second = v;
    }
    of_group[static_cast<std::size_t>(g)] = first + second;
  }
  std::vector<std::int32_t> groups(static_cast<std::size_t>(how.active_groups));
  best(
      how.groups, how.active_groups, [&](std::int32_t g) { return of_group[static_cast<std::size_t>(g)]; },
      any, groups.data());
  best(
      how.count, how.active, value,
      [&](std::int32_t e) { return std::find(groups.begin(), groups.end(), e / size) != groups.end(); },
      experts);
}

}  // namespace

Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups, const at::Tensor& bias) {
  const std::int64_t N = logits.size(0), X = how.count, A = how.active;
  Choice out{.scores = logits,
             .experts = at::empty({N, A}, logits.options().dtype(at::kInt)),
             .weights = at::empty({N, A}, logits.options()),
             .counts = {},
             .lse = at::empty({N}, logits.options()),
             .logits = {}};
  impl::cpu::with_element(logits.scalar_type(), "router", [&](auto element) {
    using M = impl::cpu::Math<decltype(element)>;
    auto* scores = static_cast<M*>(logits.data_ptr());
    auto* weights = static_cast<M*>(out.weights.data_ptr());
    auto* lse = static_cast<M*>(out.lse.data_ptr());
    const auto* added = bias.defined() ? static_cast<const M*>(bias.const_data_ptr()) : nullptr;
    auto* experts = out.experts.data_ptr<std::int32_t>();
    impl::cpu::for_rows(N, X * (A + 4), [&](std::int64_t n) {
      M* row = scores + n * X;
      lse[n] = score(row, X, how.scoring);
      choose(row, added, how, experts + n * A);
      M sum = 0;
      for (std::int64_t a = 0; a < A; ++a) sum += weights[n * A + a] = row[experts[n * A + a]];
      const M factor = M(how.scaling_factor) / (how.renormalised ? sum + M(spec::router::tiny) : M(1));
      for (std::int64_t a = 0; a < A; ++a) weights[n * A + a] *= factor;
    });
  });
  out.counts = counts_of(out.experts, X, groups);
  return out;
}

at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens,
                  const at::Tensor& ends, bool probabilities) {
  using spec::load_balancing::numbers_before_loads;
  const std::int64_t N = choice.scores.size(0), X = how.count, G = choice.counts.size(0), rows = N / G,
                     summed = 3 + (probabilities ? X : 0);
  const auto* counts = choice.counts.const_data_ptr<std::int32_t>();
  std::vector<double> sums(static_cast<std::size_t>(summed), 0.0);
  impl::cpu::with_element(choice.scores.scalar_type(), "router_losses", [&](auto element) {
    using M = impl::cpu::Math<decltype(element)>;
    const auto* scores = static_cast<const M*>(choice.scores.const_data_ptr());
    const auto* lse = static_cast<const M*>(choice.lse.const_data_ptr());
    impl::cpu::sum_over_rows<double>(N, summed, sums.data(), [&](std::int64_t n, double* sum) {
      const M* row = scores + n * X;
      const auto* count = counts + n / rows * X;
      const M all = sum_of_scores(row, X, how.scoring);
      double chosen = 0, entropy = 0;
      for (std::int64_t e = 0; e < X; ++e) {
        const auto p = static_cast<double>(row[e] / all);
        chosen += count[e] * p;
        if (p > 0) entropy -= p * std::log(p);
        if (probabilities) sum[3 + e] += p;
      }
      if (!probabilities) sum[0] += chosen * static_cast<double>(X) / static_cast<double>(how.active * rows);
      sum[1] += static_cast<double>(lse[n]) * static_cast<double>(lse[n]);
      sum[2] += entropy;
    });
  });
  at::Tensor out = at::zeros({numbers_before_loads + (probabilities ? 2 : 1) * X}, at::kDouble);
  auto* number = out.data_ptr<double>();
  const double Z = tokens.known().value();
  for (std::size_t i = 0; i < 3; ++i) number[i] = sums[i] / Z;
  if (ends.defined())
    number[3] = static_cast<double>(choice.experts.numel() - ends.const_data_ptr<std::int32_t>()[X - 1]);
  for (std::int64_t i = 0; i < G * X; ++i) number[numbers_before_loads + i % X] += counts[i];
  for (std::int64_t e = 0; probabilities && e < X; ++e)
    number[numbers_before_loads + X + e] = sums[static_cast<std::size_t>(3 + e)] / Z;
  return out;
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type, const Auxiliary& auxiliary) {
  const std::int64_t N = dweights.size(0), X = how.count, A = how.active, rows = N / choice.counts.size(0);
  at::Tensor dlogits = at::empty({N, X}, dweights.options().dtype(type));
  const double Z = auxiliary.tokens.known().value();
  const double* shares = auxiliary.shares.defined() ? auxiliary.shares.const_data_ptr<double>() : nullptr;
  impl::cpu::with_element(type, "router_backward", [&](auto element) {
    using T = decltype(element);
    using M = impl::cpu::Math<T>;
    const auto* upstream = static_cast<const M*>(dweights.const_data_ptr());
    const auto* all_scores = static_cast<const M*>(choice.scores.const_data_ptr());
    const auto* weights = static_cast<const M*>(choice.weights.const_data_ptr());
    const auto* lse = static_cast<const M*>(choice.lse.const_data_ptr());
    const auto* logits =
        choice.logits.defined() ? static_cast<const M*>(choice.logits.const_data_ptr()) : nullptr;
    const auto* experts = choice.experts.const_data_ptr<std::int32_t>();
    const auto* counts = choice.counts.const_data_ptr<std::int32_t>();
    const bool softmax = how.scoring == Scoring::softmax;
    const double of_share = auxiliary.balance * static_cast<double>(X) / Z;
    const M of_count = M(of_share / static_cast<double>(A * rows)), of_lse = M(2 * auxiliary.z / Z);
    auto* out = dlogits.data_ptr<T>();
    impl::cpu::for_rows(N, 4 * X, [&](std::int64_t n) {
      const M *scores = all_scores + n * X, *w = weights + n * A, *dw = upstream + n * A;
      const std::int32_t *chosen = experts + n * A, *count = counts + n / rows * X;
      // weight = factor score / sum, or factor score: the gradient of a chosen score.
      M sum = 0, along = 0;
      for (std::int64_t a = 0; a < A; ++a) sum += scores[chosen[a]], along += dw[a] * w[a];
      sum += M(spec::router::tiny);
      const M factor = M(how.scaling_factor);
      const auto of_weight = [&](std::int64_t a) {
        return how.renormalised ? (factor * dw[a] - along) / sum : factor * dw[a];
      };
      // The balance loss's: probability = score / all, or the score itself.
      const M all = sum_of_scores(scores, X, how.scoring);
      const auto of_expert = [&](std::int64_t e) {
        return shares ? M(of_share * shares[e]) : of_count * M(count[e]);
      };
      M balanced = 0;
      if (of_count != 0)
        for (std::int64_t e = 0; e < X; ++e) balanced += of_expert(e) * (scores[e] / all);
      const auto of_probability = [&](std::int64_t e) {
        const M d = of_expert(e);
        return softmax ? d : (d - balanced) / all;
      };
      M inner = balanced;  // of softmax
      for (std::int64_t a = 0; a < A; ++a) inner += of_weight(a) * scores[chosen[a]];
      const auto of_logit = [&](std::int64_t e, M d) {
        const M p = scores[e];
        const M z =
            of_lse == 0 ? M(0) : of_lse * lse[n] * (softmax ? p : std::exp(logits[n * X + e] - lse[n]));
        return T(z + (softmax ? p * (d - inner) : d * p * (M(1) - p)));
      };
      for (std::int64_t e = 0; e < X; ++e) out[n * X + e] = of_logit(e, of_probability(e));
      for (std::int64_t a = 0; a < A; ++a)
        out[n * X + chosen[a]] = of_logit(chosen[a], of_probability(chosen[a]) + of_weight(a));
    });
  });
  return dlogits;
}

}  // namespace assay::impl::router::cpu
