#pragma once
// swiglu against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/swiglu/swiglu.hpp"
#include "reference/ops/swiglu.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// spec/ops/swiglu/swiglu.md, with the roundings of exp and of a reciprocal counted as the device has them.
/// Where sigma leaves the range of the arithmetic it is 0 to within the least normal number.
struct SwigluBounds {
  tests::Rounding rounding;
  swiglu::Activation activation;
  reference::Tensor<double> gate, up, dy;

  double z(Index i) const { return spec::swiglu::argument(gate[i], activation); }
  double sigma(Index i) const { return 1 / (1 + std::exp(-z(i))); }
  double slope(Index i) const {
    return activation == swiglu::Activation::silu ? 1 : spec::swiglu::argument_slope(gate[i]);
  }
  /// Relative change of sigma by the roundings of z, silu's own argument having none, and of exp's argument.
  /// As large as sigma only where sigma has left the range of the arithmetic.
  double moved(Index i) const {
    const double of_z = activation == swiglu::Activation::silu ? 0 : 7, all = of_z + rounding.argument;
    const double w = (1 - sigma(i)) * std::expm1(std::min(1.0, rounding.gamma(all) * std::abs(z(i))));
    return w / (1 - std::min(0.5, w));
  }
  /// Relative bound of `roundings` and of sigma's change in `factors` of a product.
  double relative(double roundings, Index i, int factors) const {
    return (1 + rounding.gamma(roundings)) * std::pow(1 + moved(i), factors) - 1;
  }
  double lost(Index i, double factor) const {
    return rounding.smallest * factor * (1 + std::abs(gate[i]) * slope(i));
  }
  tests::Allowed of_value(const reference::Tensor<double>& value,
                          const reference::Tensor<double>& other) const {
    return tests::each(value.size(), [&](Index i) {
      return rounding.stored(
          value[i], relative(3 + rounding.exponential + rounding.reciprocal, i, 1) * std::abs(value[i]) +
                        lost(i, std::abs(other[i])));
    });
  }
  tests::Allowed y(const reference::Tensor<double>& y) const { return of_value(y, up); }
  tests::Allowed dup(const reference::Tensor<double>& dup) const { return of_value(dup, dy); }
  tests::Allowed dgate(const reference::Tensor<double>& dgate) const {
    const double of_slope = activation == swiglu::Activation::silu ? 0 : 6;
    return tests::each(dgate.size(), [&](Index i) {
      const double size = std::abs(dy[i] * up[i]);
      const double terms = size * sigma(i) * (1 + std::abs(gate[i]) * (1 + sigma(i)) * slope(i));
      return rounding.stored(
          dgate[i], relative(6 + of_slope + 2 * (rounding.exponential + rounding.reciprocal), i, 2) * terms +
                        lost(i, size));
    });
  }
};

/// gate | up as the trainer holds them.
inline at::Tensor gate_up_of(const at::Tensor& gate, const at::Tensor& up) { return at::cat({gate, up}, 1); }

inline void swiglu_matches(at::Device device, const at::Tensor& gate, const at::Tensor& up,
                           const at::Tensor& dy) {
  const Index F = gate.size(1);
  const auto activation = *rc::gen::element(swiglu::Activation::silu, swiglu::Activation::gelu_tanh);
  const SwigluBounds bounds{tests::rounding_of(gate.scalar_type(), device), activation, exact(gate),
                            exact(up), exact(dy)};
  const auto y = reference::swiglu::forward(bounds.gate, bounds.up, activation);
  const auto gradient = reference::swiglu::backward(bounds.dy, bounds.gate, bounds.up, activation);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor in = gate_up_of(gate, up).to(device);
    const at::Tensor value =
        generic ? swiglu::aten::forward(in, activation) : swiglu::forward(in, activation);
    ASSAY_RC_CLOSE(values(value), values(y), bounds.y(y));
    const at::Tensor d = dy.to(device, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor out =
        (generic ? swiglu::aten::backward : swiglu::backward)(d, in, activation, ForwardValue::again);
    RC_ASSERT(out.is_same(in));
    ASSAY_RC_CLOSE(values(d), values(y), bounds.y(y));  // the value again
    RC_ASSERT(tests::same_bits(d, value) || generic);
    ASSAY_RC_CLOSE(values(out.narrow(1, 0, F)), values(gradient.dgate), bounds.dgate(gradient.dgate));
    ASSAY_RC_CLOSE(values(out.narrow(1, F, F)), values(gradient.dup), bounds.dup(gradient.dup));
    const at::Tensor untouched = dy.to(device, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor same = (generic ? swiglu::aten::backward : swiglu::backward)(
        untouched, gate_up_of(gate, up).to(device), activation, ForwardValue::kept);
    RC_ASSERT(tests::same_bits(same, out) && tests::same_bits(untouched, dy.to(device)));
  }
}

/// Forward and backward of drawn rows against the reference.
inline void swiglu_matches_reference(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index N = *rc::gen::inRange<Index>(1, 8), F = tests::draw_extent(device, 40, 3000);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const double scale =
      *rc::gen::element(1.0, 10.0, 100.0);  // of the gate: linear, saturated, beyond exp in fp32
  swiglu_matches(device, tests::normal({N, F}, seed, type, scale), tests::normal({N, F}, seed + 1, type),
                 tests::normal({N, F}, seed + 2, type));
}

}  // namespace assay::impl::parity
