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

inline double swiglu_sigmoid(double gate) { return 1 / (1 + std::exp(-gate)); }

/// spec/ops/swiglu.md, with the roundings of exp counted as the device has them. Where sigma leaves the range
/// of the arithmetic it is 0 to within the least normal number.
struct SwigluBounds {
  tests::Rounding rounding;
  reference::Tensor<double> gate, up, dy;

  double lost(Index i, double factor) const { return rounding.smallest * factor * (1 + std::abs(gate[i])); }
  tests::Allowed y(const reference::Tensor<double>& y) const {
    return tests::each(y.size(), [&](Index i) {
      return rounding.stored(
          y[i], rounding.gamma(4 + rounding.exponential) * std::abs(y[i]) + lost(i, std::abs(up[i])));
    });
  }
  tests::Allowed dup(const reference::Tensor<double>& dup) const {
    return tests::each(dup.size(), [&](Index i) {
      return rounding.stored(
          dup[i], rounding.gamma(4 + rounding.exponential) * std::abs(dup[i]) + lost(i, std::abs(dy[i])));
    });
  }
  tests::Allowed dgate(const reference::Tensor<double>& dgate) const {
    return tests::each(dgate.size(), [&](Index i) {
      const double sigma = swiglu_sigmoid(gate[i]), size = std::abs(dy[i] * up[i]);
      const double terms = size * sigma * (1 + std::abs(gate[i]) * (1 + sigma));
      return rounding.stored(dgate[i], rounding.gamma(8 + 2 * rounding.exponential) * terms + lost(i, size));
    });
  }
};

/// gate | up as the trainer holds them.
inline at::Tensor gate_up_of(const at::Tensor& gate, const at::Tensor& up) { return at::cat({gate, up}, 1); }

inline void swiglu_matches(at::Device device, const at::Tensor& gate, const at::Tensor& up,
                           const at::Tensor& dy) {
  const Index F = gate.size(1);
  const SwigluBounds bounds{tests::rounding_of(gate.scalar_type(), device), exact(gate), exact(up),
                            exact(dy)};
  const auto y = reference::swiglu::forward(bounds.gate, bounds.up);
  const auto gradient = reference::swiglu::backward(bounds.dy, bounds.gate, bounds.up);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor in = gate_up_of(gate, up).to(device);
    const at::Tensor value = generic ? swiglu::aten::forward(in) : swiglu::forward(in);
    ASSAY_RC_CLOSE(values(value), values(y), bounds.y(y));
    const at::Tensor d = dy.to(device, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor out = (generic ? swiglu::aten::backward : swiglu::backward)(d, in, ForwardValue::again);
    RC_ASSERT(out.is_same(in));
    ASSAY_RC_CLOSE(values(d), values(y), bounds.y(y));  // the value again
    RC_ASSERT(tests::same_bits(d, value) || generic);
    ASSAY_RC_CLOSE(values(out.narrow(1, 0, F)), values(gradient.dgate), bounds.dgate(gradient.dgate));
    ASSAY_RC_CLOSE(values(out.narrow(1, F, F)), values(gradient.dup), bounds.dup(gradient.dup));
    const at::Tensor untouched = dy.to(device, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor same = (generic ? swiglu::aten::backward : swiglu::backward)(
        untouched, gate_up_of(gate, up).to(device), ForwardValue::kept);
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
