#include <ATen/ATen.h>

#include "impl/ops/adamw.hpp"
#include "impl/ops/cpu_math.hpp"

namespace assay::impl::adamw::cpu {

namespace {
constexpr std::int64_t chunk = 16384;

template <class M, class W>
void update_range(std::int64_t size, M* master, const M* gradient, M* moment1, M* moment2, W* weight,
                  const Settings& s) {
  const auto [kept, step_size, root_correction2] = scalars(s);
  const M scale = static_cast<M>(s.gradient_scale), new1 = static_cast<M>(1 - s.beta1),
          eps = static_cast<M>(s.eps);
  const M beta2 = static_cast<M>(s.beta2), new2 = static_cast<M>(1 - s.beta2), keep = static_cast<M>(kept);
  const M rate = static_cast<M>(step_size), root = static_cast<M>(1 / root_correction2);
  impl::cpu::for_chunks(size, chunk, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const M g = gradient[i] * scale;
      const M m = moment1[i] + new1 * (g - moment1[i]), v = moment2[i] * beta2 + g * g * new2;
      const M w = master[i] * keep - rate * m / (std::sqrt(v) * root + eps);
      moment1[i] = m;
      moment2[i] = v;
      master[i] = w;
      if constexpr (!std::is_same_v<W, void>) weight[i] = static_cast<W>(w);
    }
  });
}
}  // namespace

void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings) {
  const bool separate = weight.const_data_ptr() != master.const_data_ptr();
  impl::cpu::with_element(master.scalar_type(), "adamw", [&](auto state) {
    using M = impl::cpu::Math<decltype(state)>;
    M *w = master.data_ptr<M>(), *m = moment1.data_ptr<M>(), *v = moment2.data_ptr<M>();
    const M* g = gradient.const_data_ptr<M>();
    if (!separate) {
      update_range<M, void>(master.numel(), w, g, m, v, nullptr, settings);
    } else {
      impl::cpu::with_element(weight.scalar_type(), "adamw_weight", [&](auto element) {
        using scalar_t = decltype(element);
        update_range<M, scalar_t>(master.numel(), w, g, m, v, weight.data_ptr<scalar_t>(), settings);
      });
    }
  });
}

}  // namespace assay::impl::adamw::cpu
