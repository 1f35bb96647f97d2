#pragma once
// adamw against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/adamw.hpp"
#include "reference/ops/adamw.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

inline spec::adamw::Settings adamw_specified(const adamw::Settings& s) {
  return {.learning_rate = s.learning_rate,
          .beta1 = s.beta1,
          .beta2 = s.beta2,
          .eps = s.eps,
          .weight_decay = s.weight_decay,
          .step = s.step};
}

/// One step from a drawn state, in fp64 or fp32.
struct AdamwDrawn {
  at::ScalarType type = *rc::gen::element(at::kDouble, at::kFloat);
  Index n = *rc::gen::inRange<Index>(1, 60);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
  double gradient_size = *rc::gen::element(1.0, 1e-7);  // with 1e-7 eps is of the root's size
  at::Tensor master = tests::normal({n}, seed, type),
             gradient = tests::normal({n}, seed + 1, type, gradient_size);
  at::Tensor moment1 = tests::normal({n}, seed + 2, type, gradient_size);
  at::Tensor moment2 = tests::normal({n}, seed + 3, type, gradient_size).square();
  adamw::Settings settings{.learning_rate = 1e-2,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .weight_decay = *rc::gen::element(0.0, 0.1),
                           .step = *rc::gen::inRange<Index>(1, 30),
                           .gradient_scale = *rc::gen::element(1.0, 0.37)};
};

/// m: the scale, its product, the difference with m, the factor and its product, the sum: 6 roundings of the
/// terms |m| + (1 - beta1)(|g| + |m|). v: positive terms, 7 roundings. Denominator: half of those, root,
/// factor and its rounding, sum of positive terms: 8. Step: 2 factors, quotient, difference; decay 2.
struct AdamwBounds {
  std::vector<double> master, moment1, moment2;
  AdamwBounds(const AdamwDrawn& d, const reference::Tensor<double>& v_after) {
    const auto rounding = tests::rounding_of(d.type);
    const auto scalars = spec::adamw::scalars(adamw_specified(d.settings));
    const auto w = exact(d.master), g = exact(d.gradient), m = exact(d.moment1);
    for (Index i = 0; i < d.n; ++i) {
      const double terms = std::abs(m[i]) + (1 - d.settings.beta1) *
                                                (std::abs(g[i] * d.settings.gradient_scale) + std::abs(m[i]));
      const double denominator = std::sqrt(v_after[i]) / scalars.root_correction2 + d.settings.eps;
      moment1.push_back(rounding.gamma(6) * terms);
      moment2.push_back(rounding.gamma(7) * v_after[i] + rounding.smallest);
      master.push_back(rounding.gamma(6 + 8 + 4) * scalars.step_size * terms / denominator +
                       rounding.gamma(4) * std::abs(w[i]));
    }
  }
};

/// One step from a drawn state against the reference.
inline void adamw_matches_reference(at::Device device) {
  const AdamwDrawn d;
  auto master = exact(d.master), moment1 = exact(d.moment1), moment2 = exact(d.moment2),
       gradient = exact(d.gradient);
  gradient.flat() *= d.settings.gradient_scale;
  reference::adamw::update(master, gradient, moment1, moment2, adamw_specified(d.settings));
  const AdamwBounds bounds(d, moment2);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto update = generic ? adamw::aten::update : adamw::update;
    const auto on = [&](const at::Tensor& tensor) {
      return tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
    };
    const at::Tensor w = on(d.master), m = on(d.moment1), v = on(d.moment2), g = on(d.gradient);
    const at::Tensor weight = at::zeros({d.n}, at::TensorOptions(device).dtype(at::kBFloat16));
    update(weight, w, g, m, v, d.settings);
    ASSAY_RC_CLOSE(values(m), values(moment1), tests::Allowed::elementwise(bounds.moment1));
    ASSAY_RC_CLOSE(values(v), values(moment2), tests::Allowed::elementwise(bounds.moment2));
    ASSAY_RC_CLOSE(values(w), values(master), tests::Allowed::elementwise(bounds.master));
    RC_ASSERT(tests::same_bits(weight, w.to(at::kBFloat16)));

    // Without a separate master copy the same numbers are written in place.
    const at::Tensor alone = on(d.master), m2 = on(d.moment1), v2 = on(d.moment2);
    update(alone, alone, g, m2, v2, d.settings);
    RC_ASSERT(tests::same_bits(alone, w) && tests::same_bits(m2, m) && tests::same_bits(v2, v));
  }

  // The scale from the device gives the same numbers; NaN there changes nothing.
  const auto on = [&](const at::Tensor& tensor) {
    return tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
  };
  const auto scalar = [&](double value) {
    return at::full({}, value, at::TensorOptions(device).dtype(at::kDouble));
  };
  const at::Tensor w = on(d.master), m = on(d.moment1), v = on(d.moment2), g = on(d.gradient);
  adamw::update_guarded(w, w, g, m, v, d.settings, scalar(std::nan("")));
  RC_ASSERT(tests::same_bits(w, d.master) && tests::same_bits(m, d.moment1) &&
            tests::same_bits(v, d.moment2));
  const at::Tensor w2 = on(d.master), m2 = on(d.moment1), v2 = on(d.moment2);
  adamw::update(w2, w2, g, m2, v2, d.settings);
  adamw::Settings unscaled = d.settings;
  unscaled.gradient_scale = 7;  // not read
  adamw::update_guarded(w, w, g, m, v, unscaled, scalar(d.settings.gradient_scale));
  RC_ASSERT(tests::same_bits(w, w2) && tests::same_bits(m, m2) && tests::same_bits(v, v2));
}

}  // namespace assay::impl::parity
