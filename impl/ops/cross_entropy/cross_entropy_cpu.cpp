#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/cross_entropy.hpp"

namespace assay::impl::cross_entropy::cpu {

using impl::cpu::Math;

namespace {
template <class T>
Math<T> log_sum_exp(const T* row, std::int64_t V) {
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
  const M sum = impl::cpu::sum_of<M>(sums);
  return largest + std::log(sum);
}
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  const std::int64_t N = logits.size(0), V = logits.size(1), apart = logits.stride(0);
  Forward out;
  out.lse = at::empty({N}, logits.options().dtype(impl::cpu::math_type(logits.scalar_type())));
  const auto* target = targets.const_data_ptr<std::int64_t>();
  double loss = 0, squares = 0;
  impl::cpu::with_element(logits.scalar_type(), "cross_entropy", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* rows = logits.const_data_ptr<scalar_t>();
    M* lse = out.lse.data_ptr<M>();
    impl::cpu::for_rows(N, V, [&](std::int64_t n) { lse[n] = log_sum_exp(rows + n * apart, V); });
    for (std::int64_t n = 0; n < N; ++n) {
      if (target[n] == spec::cross_entropy::ignore) continue;
      const auto exact = static_cast<double>(lse[n]);
      loss += exact - static_cast<double>(M(rows[n * apart + target[n]]));
      squares += exact * exact;
    }
  });
  const double divisor = normalizer.known().value();
  out.loss = at::scalar_tensor(loss / divisor, at::kDouble);
  out.z_loss = at::scalar_tensor(z * squares / divisor, at::kDouble);
  return out;
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, double z) {
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
      const M shift = lses[n], factor = share * (M(1) + static_cast<M>(2 * z) * shift);
      const M of_target = impl::cpu::exponential(M(row[target[n]]) - shift) * factor - share;
      for (std::int64_t v = 0; v < V; v += impl::cpu::Lanes<M>::count)
        impl::cpu::store(row + v, impl::cpu::exponential(impl::cpu::load(row + v, V - v) - shift) * factor,
                         V - v);
      row[target[n]] = scalar_t(of_target);
    });
  });
  return logits;
}

}  // namespace assay::impl::cross_entropy::cpu
