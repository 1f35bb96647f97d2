// labels: parity property
#include "impl/ops/adamw.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/adamw.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using reference::Tensor;
using tests::exact;
using tests::values;

spec::adamw::Settings specified(const adamw::Settings& s) {
  return {.learning_rate = s.learning_rate,
          .beta1 = s.beta1,
          .beta2 = s.beta2,
          .eps = s.eps,
          .weight_decay = s.weight_decay,
          .step = s.step};
}

/// One step from a drawn state, in fp64 or fp32.
struct Drawn {
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
struct Bounds {
  std::vector<double> master, moment1, moment2;
  Bounds(const Drawn& d, const Tensor<double>& v_after) {
    const auto rounding = tests::rounding_of(d.type);
    const auto scalars = spec::adamw::scalars(specified(d.settings));
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

RC_GTEST_PROP(AdamwImpl, OneStepMatchesReference, ()) {
  const Drawn d;
  auto master = exact(d.master), moment1 = exact(d.moment1), moment2 = exact(d.moment2),
       gradient = exact(d.gradient);
  gradient.flat() *= d.settings.gradient_scale;
  reference::adamw::update(master, gradient, moment1, moment2, specified(d.settings));
  const Bounds bounds(d, moment2);
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const auto update = generic ? adamw::aten::update : adamw::update;
    const at::Tensor w = d.master.clone(), m = d.moment1.clone(), v = d.moment2.clone();
    const at::Tensor weight = at::zeros({d.n}, at::kBFloat16);
    update(weight, w, d.gradient, m, v, d.settings);
    ASSAY_RC_CLOSE(values(m), values(moment1), tests::Allowed::elementwise(bounds.moment1));
    ASSAY_RC_CLOSE(values(v), values(moment2), tests::Allowed::elementwise(bounds.moment2));
    ASSAY_RC_CLOSE(values(w), values(master), tests::Allowed::elementwise(bounds.master));
    RC_ASSERT(tests::same_bits(weight, w.to(at::kBFloat16)));

    // Without a separate master copy the same numbers are written in place.
    const at::Tensor alone = d.master.clone(), m2 = d.moment1.clone(), v2 = d.moment2.clone();
    update(alone, alone, d.gradient, m2, v2, d.settings);
    RC_ASSERT(tests::same_bits(alone, w) && tests::same_bits(m2, m) && tests::same_bits(v2, v));
  }
}

TEST(AdamwImpl, SameBitsOnAnyNumberOfThreadsAndRanges) {
  const at::Tensor gradient = tests::normal({50001}, 1, at::kFloat),
                   start = tests::normal({50001}, 2, at::kFloat);
  const adamw::Settings settings{1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5};
  const auto run = [&](Index cut) {
    at::Tensor w = start.clone(), m = at::zeros_like(w), v = at::zeros_like(w);
    for (const auto& [from, size] : {std::pair{Index(0), cut}, std::pair{cut, 50001 - cut}}) {
      const auto part = [from = from, size = size](const at::Tensor& all) {
        return all.narrow(0, from, size);
      };
      adamw::update(part(w), part(w), part(gradient), part(m), part(v), settings);
    }
    return std::vector{w, m, v};
  };
  EXPECT_TRUE(tests::repeatable([&] { return run(0); }));
  // Shards of any size update an entry alike.
  for (Index cut : {1, 777, 16384, 50000})
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(tests::same_bits(run(cut)[i], run(0)[i])) << cut << " " << i;
}

TEST(AdamwImpl, ConstraintsAreChecked) {
  const auto update = [](Index entries, adamw::Settings settings) {
    const at::Tensor w = at::ones({3}), m = at::zeros({3}), v = at::zeros({3});
    return tests::refusal([&] { adamw::update(w, w, at::ones({entries}), m, v, settings); });
  };
  const adamw::Settings good{1e-2, 0.9, 0.95, 1e-8, 0.1, 1, 1};
  const auto with = [&](auto change) {
    adamw::Settings changed = good;
    change(changed);
    return update(3, changed);
  };
  EXPECT_EQ(update(3, good), "accepted");
  EXPECT_EQ(update(2, good), "adamw_c1");
  EXPECT_EQ(with([](auto& s) { s.step = 0; }), "adamw_c2");
  EXPECT_EQ(with([](auto& s) { s.beta1 = 1; }), "adamw_c3");
  EXPECT_EQ(with([](auto& s) { s.eps = 0; }), "adamw_c4");
  EXPECT_EQ(with([](auto& s) { s.learning_rate = -1; }), "adamw_c5");
  EXPECT_EQ(with([](auto& s) { s.weight_decay = -1; }), "adamw_c6");
}

}  // namespace
}  // namespace assay::impl
