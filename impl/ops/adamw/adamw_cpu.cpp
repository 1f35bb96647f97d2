#include <ATen/ATen.h>

#include "impl/ops/adamw/adamw.hpp"
#include "impl/ops/cpu_math.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"
#include "spec/random/stochastic_rounding.hpp"

namespace assay::impl::adamw::cpu {

namespace {
constexpr std::int64_t chunk = 16384;

/// What all entries of a step share, in the arithmetic's type, and the update of one of them.
template <class M>
struct Step {
  M scale, new1, beta2, new2, eps, keep, rate, root;

  Step(const Settings& s, const spec::adamw::Scalars& shared)
      : scale(static_cast<M>(s.gradient_scale)),
        new1(static_cast<M>(1 - s.beta1)),
        beta2(static_cast<M>(s.beta2)),
        new2(static_cast<M>(1 - s.beta2)),
        eps(static_cast<M>(s.eps)) {
    keep = static_cast<M>(shared.kept);
    rate = static_cast<M>(shared.step_size);
    root = static_cast<M>(1 / shared.root_correction2);
  }

  void apply(M& w, M& m, M& v, M gradient) const {
    const M g = gradient * scale;
    m = m + new1 * (g - m);
    v = v * beta2 + g * g * new2;
    w = w * keep - rate * m / (std::sqrt(v) * root + eps);
  }
};

template <class M, class W>
void update_range(std::int64_t size, M* master, const M* gradient, M* moment1, M* moment2, W* weight,
                  const Settings& s, const spec::adamw::Scalars& shared) {
  const Step<M> step(s, shared);
  impl::cpu::for_chunks(size, chunk, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      M w = master[i], m = moment1[i], v = moment2[i];
      step.apply(w, m, v, gradient[i]);
      moment1[i] = m;
      moment2[i] = v;
      master[i] = w;
      if constexpr (!std::is_same_v<W, void>) weight[i] = static_cast<W>(w);
    }
  });
}

at::BFloat16 rounded(float value, std::uint16_t random) {
  return {spec::random::stochastic_bf16(value, random), at::BFloat16::from_bits()};
}

/// States in bf16: computed in fp32, rounded by chance.
void update_bf16(std::int64_t size, at::BFloat16* weight, const float* gradient, at::BFloat16* moment1,
                 at::BFloat16* moment2, const Settings& s, const spec::adamw::Scalars& shared) {
  const Step<float> step(s, shared);
  const spec::random::Stream stream = spec::adamw::rounding_stream(s.seed, s.step);
  impl::cpu::for_chunks(size, chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto entry = static_cast<std::uint64_t>(s.first + i);
      const auto bits = spec::adamw::rounding_bits(stream.block(entry / 2), entry);
      float w = weight[i], m = moment1[i], v = moment2[i];
      step.apply(w, m, v, gradient[i]);
      weight[i] = rounded(w, bits.parameter);
      moment1[i] = rounded(m, bits.moment1);
      moment2[i] = rounded(v, bits.moment2);
    }
  });
}
}  // namespace

void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings) {
  update_by(scalars(settings), weight, master, gradient, moment1, moment2, settings);
}

void update_by(const spec::adamw::Scalars& shared, at::Tensor weight, at::Tensor master,
               const at::Tensor& gradient, at::Tensor moment1, at::Tensor moment2, const Settings& settings) {
  if (master.scalar_type() == at::kBFloat16)
    return update_bf16(master.numel(), master.data_ptr<at::BFloat16>(), gradient.const_data_ptr<float>(),
                       moment1.data_ptr<at::BFloat16>(), moment2.data_ptr<at::BFloat16>(), settings, shared);
  const bool separate = weight.const_data_ptr() != master.const_data_ptr();
  impl::cpu::with_element(master.scalar_type(), "adamw", [&](auto state) {
    using M = impl::cpu::Math<decltype(state)>;
    M *w = master.data_ptr<M>(), *m = moment1.data_ptr<M>(), *v = moment2.data_ptr<M>();
    const M* g = gradient.const_data_ptr<M>();
    if (!separate) {
      update_range<M, void>(master.numel(), w, g, m, v, nullptr, settings, shared);
    } else {
      impl::cpu::with_element(weight.scalar_type(), "adamw_weight", [&](auto element) {
        using scalar_t = decltype(element);
        update_range<M, scalar_t>(master.numel(), w, g, m, v, weight.data_ptr<scalar_t>(), settings, shared);
      });
    }
  });
}

}  // namespace assay::impl::adamw::cpu
