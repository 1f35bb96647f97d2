#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::impl::cross_entropy::cpu {

using impl::cpu::Math;

namespace {
/// Sum of exp(x - top), and top, the largest x.
template <class M>
struct Sum {
  M top, sum;
  M log() const { return top + std::log(sum); }
};

template <class T>
Sum<Math<T>> sum_exp(const T* row, std::int64_t V) {
  using M = Math<T>;
  using Lane = impl::cpu::Lanes<M>;
  const auto hidden = Lane::all(-std::numeric_limits<M>::infinity());
  auto top = hidden;
  for (std::int64_t v = 0; v < V; v += Lane::count) {
    const auto logits = impl::cpu::load(row + v, V - v, hidden);
    top = logits > top ? logits : top;
  }
  const M largest = impl::cpu::largest_of<M>(top);
  auto sums = Lane::all(0);
  for (std::int64_t v = 0; v < V; v += Lane::count)
    sums += impl::cpu::exponential(impl::cpu::load(row + v, V - v, hidden) - largest);
  return {largest, impl::cpu::sum_of<M>(sums)};
}

/// Losses of rows whose lse is known; of_target(n) is the logit of row n's target.
template <class M, class OfTarget>
Forward losses(const at::Tensor& lse, const at::Tensor& targets, const Normalizer& normalizer,
               const Terms& terms, const OfTarget& of_target) {
  const auto* target = targets.const_data_ptr<std::int64_t>();
  const M* lses = lse.const_data_ptr<M>();
  double loss = 0, squares = 0;
  for (std::int64_t n = 0; n < lse.numel(); ++n) {
    if (target[n] == spec::cross_entropy::ignore) continue;
    const auto exact = static_cast<double>(lses[n]);
    loss += exact - static_cast<double>(of_target(n));
    squares += exact * exact;
  }
  const double divisor = normalizer.known().value();
  return {at::scalar_tensor(loss / divisor, at::kDouble),
          at::scalar_tensor(terms.z * squares / divisor, at::kDouble), lse};
}
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  const std::int64_t N = logits.size(0), V = logits.size(1), apart = logits.stride(0);
  Forward out;
  out.lse = at::empty({N}, logits.options().dtype(impl::cpu::math_type(logits.scalar_type())));
  const auto* target = targets.const_data_ptr<std::int64_t>();
  impl::cpu::with_element(logits.scalar_type(), "cross_entropy", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* rows = logits.const_data_ptr<scalar_t>();
    M* lse = out.lse.data_ptr<M>();
    impl::cpu::for_rows(N, V, [&](std::int64_t n) { lse[n] = sum_exp(rows + n * apart, V).log(); });
    out = losses<M>(out.lse, targets, normalizer, terms,
                    [&](std::int64_t n) { return M(rows[n * apart + target[n]]); });
  });
  return out;
}

Partial partial(const at::Tensor& logits, const at::Tensor& own_targets, const Terms&) {
  const std::int64_t N = logits.size(0), V = logits.size(1), apart = logits.stride(0);
  const auto options = logits.options().dtype(impl::cpu::math_type(logits.scalar_type()));
  const at::Tensor sums = at::empty({2, N}, options);
  const Partial own{at::empty({N}, options), sums[0], sums[1], sums};
  const auto* target = own_targets.const_data_ptr<std::int64_t>();
  impl::cpu::with_element(logits.scalar_type(), "cross_entropy_partial", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* rows = logits.const_data_ptr<scalar_t>();
    M *top = own.top.data_ptr<M>(), *sum = own.sum.data_ptr<M>(), *of_target = own.of_target.data_ptr<M>();
    impl::cpu::for_rows(N, V, [&](std::int64_t n) {
      const auto row = sum_exp(rows + n * apart, V);
      top[n] = row.top;
      sum[n] = row.sum;
      of_target[n] = target[n] >= 0 ? M(rows[n * apart + target[n]]) : M(0);
    });
  });
  return own;
}

Forward combine(const Partial& all, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  Forward out;
  out.lse = at::empty_like(all.top);
  impl::cpu::with_element(all.top.scalar_type(), "cross_entropy_combine", [&](auto element) {
    using M = Math<decltype(element)>;
    const M *top = all.top.const_data_ptr<M>(), *sum = all.sum.const_data_ptr<M>();
    M* lse = out.lse.data_ptr<M>();
    for (std::int64_t n = 0; n < out.lse.numel(); ++n) lse[n] = Sum<M>{top[n], sum[n]}.log();
    const M* of_target = all.of_target.const_data_ptr<M>();
    out = losses<M>(out.lse, targets, normalizer, terms, [&](std::int64_t n) { return of_target[n]; });
  });
  return out;
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, const Terms& terms) {
  const std::int64_t N = logits.size(0), V = logits.size(1), apart = logits.stride(0);
  const auto* target = targets.const_data_ptr<std::int64_t>();
  const double divisor = normalizer.known().value();
  impl::cpu::with_element(logits.scalar_type(), "cross_entropy_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    auto* rows = logits.data_ptr<scalar_t>();
    const M* lses = lse.const_data_ptr<M>();
    const M share = static_cast<M>(1 / divisor);
    impl::cpu::for_rows(N, V, [&](std::int64_t n) {
      scalar_t* row = rows + n * apart;
      if (target[n] == spec::cross_entropy::ignore) {
        std::fill_n(row, V, scalar_t(0));
        return;
      }
      const M shift = lses[n], factor = share * (M(1) + static_cast<M>(2 * terms.z) * shift);
      const bool own = target[n] != spec::foreign;
      const M of_target = own ? impl::cpu::exponential(M(row[target[n]]) - shift) * factor - share : M(0);
      for (std::int64_t v = 0; v < V; v += impl::cpu::Lanes<M>::count)
        impl::cpu::store(row + v, impl::cpu::exponential(impl::cpu::load(row + v, V - v) - shift) * factor,
                         V - v);
      if (own) row[target[n]] = scalar_t(of_target);
    });
  });
  return logits;
}

}  // namespace assay::impl::cross_entropy::cpu
