#pragma once
// adamw against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/adamw/adamw.hpp"
#include "reference/ops/adamw.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"
#include "spec/random/stochastic_rounding.hpp"
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

  // So do the numbers of the step; those of the settings are then not read.
  const at::Tensor w3 = on(d.master), m3 = on(d.moment1), v3 = on(d.moment2);
  const auto numbers = adamw::step_numbers(d.settings, false);
  adamw::Settings others = unscaled;
  others.learning_rate = 5, others.weight_decay = 3, others.step = 1;
  adamw::update_guarded(w3, w3, g, m3, v3, others, scalar(d.settings.gradient_scale),
                        at::tensor(at::ArrayRef<double>(numbers), at::kDouble).to(device));
  RC_ASSERT(tests::same_bits(w3, w) && tests::same_bits(m3, m) && tests::same_bits(v3, v));
}

/// One step on bf16 states. The result is the rounding, by the same random bits, of a number within the
/// bounds of the exact one: rounding by given bits is monotone, so it lies between those of both ends.
inline void adamw_bf16_matches_reference(at::Device device) {
  AdamwDrawn d;
  d.type = at::kFloat;  // of the arithmetic
  const bool wide = *rc::gen::arbitrary<bool>();
  if (wide) d.n = 8 * *rc::gen::inRange<Index>(1, 60);
  d.gradient = tests::normal({d.n}, d.seed + 1, at::kFloat, d.gradient_size);
  d.master = tests::normal({d.n}, d.seed, at::kBFloat16);
  d.moment1 = tests::normal({d.n}, d.seed + 2, at::kBFloat16, d.gradient_size);
  d.moment2 = tests::normal({d.n}, d.seed + 3, at::kBFloat16, d.gradient_size).square();
  d.settings.seed = d.seed;
  d.settings.first = *rc::gen::inRange<Index>(0, 50);
  if (wide) d.settings.first *= 2;
  auto master = exact(d.master), moment1 = exact(d.moment1), moment2 = exact(d.moment2),
       gradient = exact(d.gradient);
  gradient.flat() *= d.settings.gradient_scale;
  reference::adamw::update(master, gradient, moment1, moment2, adamw_specified(d.settings));
  const AdamwBounds bounds(d, moment2);

  const at::Tensor w = d.master.to(device, false, true), m = d.moment1.to(device, false, true),
                   v = d.moment2.to(device, false, true);
  adamw::update(w, w, d.gradient.to(device), m, v, d.settings);
  const auto stream = spec::adamw::rounding_stream(d.settings.seed, d.settings.step);
  const auto lies_between = [](double got, double right, double bound, std::uint16_t random) {
    return spec::random::stochastic_bf16_of_real(right - bound, random) <= got &&
           got <= spec::random::stochastic_bf16_of_real(right + bound, random);
  };
  const auto got_w = exact(w), got_m = exact(m), got_v = exact(v);
  for (Index i = 0; i < d.n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto entry = static_cast<std::uint64_t>(d.settings.first + i);
    const auto bits = spec::adamw::rounding_bits(stream.block(entry / 2), entry);
    RC_ASSERT(lies_between(got_w[i], master[i], bounds.master[at], bits.parameter));
    RC_ASSERT(lies_between(got_m[i], moment1[i], bounds.moment1[at], bits.moment1));
    RC_ASSERT(lies_between(got_v[i], moment2[i], bounds.moment2[at], bits.moment2));
  }

  // The numbers of the step from the device, which choose the random bits too, give the same.
  const at::Tensor w3 = d.master.to(device, false, true), m3 = d.moment1.to(device, false, true),
                   v3 = d.moment2.to(device, false, true);
  adamw::Settings others = d.settings;
  others.learning_rate = 5, others.weight_decay = 3, others.step = 77;
  const auto numbers = adamw::step_numbers(d.settings, true);
  adamw::update_guarded(w3, w3, d.gradient.to(device), m3, v3, others,
                        at::full({}, d.settings.gradient_scale, at::TensorOptions(device).dtype(at::kDouble)),
                        at::tensor(at::ArrayRef<double>(numbers), at::kDouble).to(device));
  RC_ASSERT(tests::same_bits(w3, w) && tests::same_bits(m3, m) && tests::same_bits(v3, v));

  // NaN from the device changes nothing.
  const at::Tensor w2 = w.clone(), m2 = m.clone(), v2 = v.clone();
  adamw::update_guarded(w, w, d.gradient.to(device), m, v, d.settings,
                        at::full({}, std::nan(""), at::TensorOptions(device).dtype(at::kDouble)));
  RC_ASSERT(tests::same_bits(w, w2) && tests::same_bits(m, m2) && tests::same_bits(v, v2));
}

/// A range cut anywhere is updated as the whole, bit for bit: weight, first and second moment.
inline std::vector<at::Tensor> adamw_bf16_in_two(at::Device device, Index n, Index cut) {
  const at::Tensor gradient = tests::normal({n}, 1, at::kFloat).to(device);
  const at::Tensor w = tests::normal({n}, 2, at::kBFloat16).to(device), m = at::zeros_like(w),
                   v = at::zeros_like(w);
  for (const auto& [from, size] : {std::pair{Index(0), cut}, std::pair{cut, n - cut}}) {
    const auto part = [from = from, size = size](const at::Tensor& all) { return all.narrow(0, from, size); };
    adamw::update(part(w), part(w), part(gradient), part(m), part(v),
                  {1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5, /*seed=*/11, /*first=*/from});
  }
  return {w, m, v};
}

}  // namespace assay::impl::parity
