#pragma once
// cross_entropy against the reference, on any device.
#include <rapidcheck.h>

#include <vector>

#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "reference/ops/cross_entropy.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

struct CrossEntropyDrawn {
  at::ScalarType type;
  at::Device device;
  Index N = *rc::gen::inRange<Index>(1, 12), V;
  double normalizer = *rc::gen::element(1.0, 29.0), z = *rc::gen::element(0.0, 1e-4, 1e-2);
  at::Tensor logits =
      tests::normal({N, V}, *rc::gen::arbitrary<std::uint64_t>(), type, *rc::gen::element(1.0, 8.0));
  reference::Ids targets;
  CrossEntropyDrawn(at::ScalarType of, at::Device where)
      : CrossEntropyDrawn(of, where, tests::draw_extent(where, 60, 5000)) {}
  CrossEntropyDrawn(at::ScalarType of, at::Device where, Index columns)
      : type(of), device(where), V(columns) {
    for (Index n = 0; n < N; ++n)
      targets.push_back(*rc::gen::inRange<Index>(0, 4) ? *rc::gen::inRange<Index>(0, V) : -100);
  }
};

/// Absolute errors of lse (spec/ops/cross_entropy/cross_entropy.md, exp counted as the device has it), and
/// what follows from them.
struct CrossEntropyBounds {
  const CrossEntropyDrawn& d;
  const reference::Tensor<double> lse;
  const double slices = 0;  ///< of the vocabulary, 0 where the op has all of it
  const reference::Tensor<double> logits = exact(d.logits);
  const tests::Rounding rounding = tests::rounding_of(d.type, d.device);
  const std::vector<double> lse_errors = rows_of([this](Index n) { return lse_error(n); });

  double of_lse(Index n) const { return lse_errors[static_cast<std::size_t>(n)]; }
  double lse_error(Index n) const {
    double largest = logits(n, 0), least = largest;
    for (Index v = 0; v < d.V; ++v)
      largest = std::max(largest, logits(n, v)), least = std::min(least, logits(n, v));
    // A slice's sum is multiplied by an exp of its own; then the slices are added.
    const double more = slices > 0 ? rounding.exponential + slices : 0;
    return rounding.gamma(static_cast<double>(d.V) + 1 + rounding.exponential + more) +
           rounding.gamma(1 + rounding.argument) * (largest - least) +
           rounding.gamma(2) * (std::abs(lse[n] - largest) + std::abs(largest));
  }
  tests::Allowed of_all_lse() const { return tests::Allowed::elementwise(lse_errors); }
  template <class Of>
  std::vector<double> rows_of(const Of& of) const {
    std::vector<double> all;
    for (Index n = 0; n < d.N; ++n) all.push_back(of(n));
    return all;
  }

  /// Sums of terms(n) with errors error(n), in fp64, over the normalizer.
  template <class Terms, class Errors>
  double of_sum(const Terms& terms, const Errors& errors) const {
    double sizes = 0, total = 0;
    for (Index n = 0; n < d.N; ++n) {
      if (d.targets[static_cast<std::size_t>(n)] == -100) continue;
      sizes += terms(n);
      total += errors(n);
    }
    return (total + 2 * gamma(static_cast<double>(d.N) + 4, unit_roundoff(Dtype::f64)) * (sizes + total)) /
           d.normalizer;
  }
  double of_loss() const {
    return of_sum(
        [&](Index n) {
          return std::abs(lse[n]) + std::abs(logits(n, d.targets[static_cast<std::size_t>(n)]));
        },
        [&](Index n) { return of_lse(n); });
  }
  double of_z_loss() const {
    return d.z * of_sum([&](Index n) { return lse[n] * lse[n]; },
                        [&](Index n) { return (2 * std::abs(lse[n]) + of_lse(n)) * of_lse(n); });
  }
  /// p has the absolute error of logit - lse as a relative one; six roundings for exp, the factor 1 + 2 z lse
  /// and the product; the target's entry subtracts 1.
  tests::Allowed of_gradient(const reference::Tensor<double>& gradient) const {
    return tests::each(gradient.size(), [&](Index i) {
      const Index n = i / d.V;
      const auto target = d.targets[static_cast<std::size_t>(n)];
      if (target == -100) return 0.0;
      const double p = std::exp(logits[i] - lse[n]),
                   exponent =
                       of_lse(n) + rounding.gamma(1 + rounding.argument) * std::abs(logits[i] - lse[n]);
      const double scaled = p * (1 + 2 * d.z * std::abs(lse[n])), hit = target == i % d.V ? 1 : 0;
      const double error =
          scaled * (std::expm1(exponent) + rounding.gamma(6 + rounding.exponential)) * (1 + exponent) +
          p * 2 * d.z * of_lse(n) + rounding.gamma(3) * hit + rounding.gamma(1) * std::abs(scaled - hit);
      const double lost = rounding.smallest * (1 + 2 * d.z * std::abs(lse[n])) / d.normalizer;
      return rounding.stored(gradient[i], error / d.normalizer + lost + rounding.smallest);
    });
  }
};

inline tests::Values scalar_value(double value) { return {{}, {value}}; }
inline tests::Allowed scalar_bound(double bound) { return tests::Allowed::elementwise({bound}); }

/// Loss, lse and gradient of drawn logits against the reference.
inline void cross_entropy_matches_reference(at::Device device) {
  const CrossEntropyDrawn d(tests::draw_dtype(), device);
  const auto expected = reference::cross_entropy::forward(exact(d.logits), d.targets, d.normalizer, d.z);
  const auto gradient =
      reference::cross_entropy::backward(1.0, exact(d.logits), d.targets, expected.lse, d.normalizer, d.z);
  const CrossEntropyBounds bounds{d, expected.lse};
  const at::Tensor targets = tests::integers(d.targets).to(device);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto out = (generic ? cross_entropy::aten::forward : cross_entropy::forward)(
        d.logits.to(device), targets, d.normalizer, d.z);
    RC_ASSERT(out.loss.scalar_type() == at::kDouble && out.lse.scalar_type() == tests::math_of(d.type));
    ASSAY_RC_CLOSE(values(out.lse), values(expected.lse), bounds.of_all_lse());
    ASSAY_RC_CLOSE(values(out.loss), scalar_value(expected.cross_entropy), scalar_bound(bounds.of_loss()));
    ASSAY_RC_CLOSE(values(out.z_loss), scalar_value(expected.z_loss), scalar_bound(bounds.of_z_loss()));
    // Rows apart, as of a padded vocabulary: what lies between them is neither read nor written.
    const Index apart = d.V + *rc::gen::element<Index>(0, 1, 8 - d.V % 8);
    const at::Tensor whole = at::full({d.N, apart}, 100, d.logits.options().device(device));
    const at::Tensor logits = whole.narrow(1, 0, d.V);
    logits.copy_(d.logits);
    const auto again =
        (generic ? cross_entropy::aten::forward : cross_entropy::forward)(logits, targets, d.normalizer, d.z);
    ASSAY_RC_CLOSE(values(again.lse), values(expected.lse), bounds.of_all_lse());
    const at::Tensor ours = (generic ? cross_entropy::aten::backward : cross_entropy::backward)(
        logits, targets, out.lse, d.normalizer, d.z);
    RC_ASSERT(ours.is_same(logits));
    // The normalizer may be a tensor on the device: the same bits.
    const Normalizer there = at::full({}, d.normalizer, at::TensorOptions(device).dtype(at::kDouble));
    const auto by_tensor = (generic ? cross_entropy::aten::forward : cross_entropy::forward)(
        d.logits.to(device), targets, there, d.z);
    RC_ASSERT(tests::same_bits(by_tensor.loss, out.loss) && tests::same_bits(by_tensor.z_loss, out.z_loss));
    RC_ASSERT(tests::same_bits((generic ? cross_entropy::aten::backward : cross_entropy::backward)(
                                   d.logits.to(device, false, true), targets, out.lse, there, d.z),
                               ours));
    if (!generic) {
      // Both at once have the bits of one after the other, in rows that lie alike: how they lie decides how a
      // GPU reads them, and so in which order it adds.
      const at::Tensor in_turn = at::full_like(whole, 100), both = at::full_like(whole, 100);
      for (const at::Tensor& rows : {in_turn, both}) rows.narrow(1, 0, d.V).copy_(d.logits);
      cross_entropy::backward(in_turn.narrow(1, 0, d.V), targets, again.lse, d.normalizer, d.z);
      const auto at_once =
          cross_entropy::forward_backward(both.narrow(1, 0, d.V), targets, d.normalizer, d.z);
      RC_ASSERT(tests::same_bits(at_once.lse, again.lse) && tests::same_bits(at_once.loss, again.loss) &&
                tests::same_bits(at_once.z_loss, again.z_loss) && tests::same_bits(both, in_turn));
    }
    RC_ASSERT(whole.narrow(1, d.V, apart - d.V).eq(100).all().item<bool>());
    const auto result = tests::close(values(ours), values(gradient), bounds.of_gradient(gradient), true);
    if (!result) RC_FAIL(std::string(result.message()));
  }
}

}  // namespace assay::impl::parity
