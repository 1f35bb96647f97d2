#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/swiglu.hpp"

namespace assay::impl::swiglu::cpu {

using impl::cpu::Math;

at::Tensor forward(const at::Tensor& gate_up) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  at::Tensor y = at::empty({N, F}, gate_up.options());
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* in = gate_up.const_data_ptr<scalar_t>();
    auto* ys = y.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      const scalar_t *gate = in + n * 2 * F, *up = gate + F;
      scalar_t* out = ys + n * F;
#pragma omp simd
      for (std::int64_t f = 0; f < F; ++f) {
        const M g = M(gate[f]);
        out[f] = scalar_t(g / (M(1) + impl::cpu::exponential(-g)) * M(up[f]));
      }
    });
  });
  return y;
}

at::Tensor backward(const at::Tensor& dy, at::Tensor gate_up) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* dys = dy.const_data_ptr<scalar_t>();
    auto* in = gate_up.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      scalar_t *gate = in + n * 2 * F, *up = gate + F;
      const scalar_t* upstream = dys + n * F;
#pragma omp simd
      for (std::int64_t f = 0; f < F; ++f) {
        const M g = M(gate[f]), d = M(upstream[f]);
        const M sigmoid = M(1) / (M(1) + impl::cpu::exponential(-g));
        gate[f] = scalar_t(d * M(up[f]) * sigmoid * (M(1) + g * (M(1) - sigmoid)));
        up[f] = scalar_t(d * (g * sigmoid));
      }
    });
  });
  return gate_up;
}

}  // namespace assay::impl::swiglu::cpu
