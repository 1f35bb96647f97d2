#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/rope/rope.hpp"

namespace assay::impl::rope::cpu {

void rotate(at::Tensor x, std::int64_t rotated, const Table& table, const at::Tensor& positions,
            bool inverse) {
  const std::int64_t B = x.size(0), T = x.size(1), heads = x.size(2), E = x.size(3), half = E / 2;
  const auto* position = positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr;
  impl::cpu::with_element(x.scalar_type(), "rope", [&](auto element) {
    using scalar_t = decltype(element);
    using M = impl::cpu::Math<scalar_t>;
    auto* values = x.data_ptr<scalar_t>();
    const M *cosines = table.cosine.const_data_ptr<M>(), *sines = table.sine.const_data_ptr<M>();
    const M sign = inverse ? M(-1) : M(1);
    impl::cpu::for_rows(B * T, rotated * E, [&](std::int64_t n) {
      const std::int64_t at = position ? position[n] : n % T;
      const M *c = cosines + at * half, *s = sines + at * half;
      for (std::int64_t h = 0; h < rotated; ++h) {
        scalar_t *low = values + (n * heads + h) * E, *high = low + half;
#pragma omp simd
        for (std::int64_t e = 0; e < half; ++e) {
          const M a = M(low[e]), b = M(high[e]), sine = sign * s[e];
          low[e] = scalar_t(a * c[e] - b * sine);
          high[e] = scalar_t(b * c[e] + a * sine);
        }
      }
    });
  });
}

at::Tensor joined_backward(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv,
                           const Table& table, const at::Tensor& positions) {
  const at::Tensor dqkv = at::cat({dq, dk, dv}, 2).contiguous();
  cpu::rotate(dqkv, dq.size(2) + dk.size(2), table, positions, /*inverse=*/true);
  return dqkv;
}

}  // namespace assay::impl::rope::cpu
