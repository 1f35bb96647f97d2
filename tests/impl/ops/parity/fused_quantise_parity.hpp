#pragma once
// Fused quantisation against quantise() of the ops' own results, to the bit, on any device.
#include "impl/ops/quantise/fused.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "tests/impl/ops/parity/quantise_parity.hpp"

namespace assay::impl::parity {

using quantise::Twins;

inline bool same(const Quantised& a, const Quantised& b) {
  if (a.defined() != b.defined() || !a.defined()) return a.defined() == b.defined();
  return a.scaling == b.scaling && a.codes.sizes() == b.codes.sizes() &&
         a.codes.scalar_type() == b.codes.scalar_type() && at::equal(bytes_of(a.codes), bytes_of(b.codes)) &&
         at::equal(bytes_of(a.scales), bytes_of(b.scales));
}
inline bool same(const Twins& a, const Twins& b) {
  return same(a.rows, b.rows) && same(a.columns, b.columns);
}

struct FusedCase {
  at::ScalarType type;
  Index N, width;  ///< rows; D of the norm, F of the gate
  Quantisation how;
  quantise::Orientation orientation;
  std::uint64_t seed;
};

/// Half of the widths are multiples of 8, which the kernels take; a third of them multiples of 128.
inline FusedCase draw_fused(at::Device device, const std::vector<Scaling>& scalings) {
  const Index width =
      *rc::gen::oneOf(rc::gen::inRange<Index>(1, 200),
                      rc::gen::map(rc::gen::inRange<Index>(1, 40), [](Index n) { return 8 * n; }),
                      rc::gen::element<Index>(128, 256, 384));
  return {device.is_cpu() ? tests::draw_dtype() : *rc::gen::element(at::kBFloat16, at::kBFloat16, at::kFloat),
          draw_extent_of_blocks(),
          width,
          {draw_format(), *rc::gen::elementOf(scalings)},
          *rc::gen::element(Orientation::rows, Orientation::columns, Orientation::both),
          *rc::gen::arbitrary<std::uint32_t>()};
}

inline void fused_norm_is_the_norm_quantised(at::Device device, const std::vector<Scaling>& scalings) {
  const auto c = draw_fused(device, scalings);
  const at::Tensor x = matrix_of(Entries::many_sizes, c.N, c.width, c.seed, c.type).to(device),
                   gain = tests::normal({c.width}, c.seed + 2, tests::math_of(c.type)).to(device);
  const auto [y, rstd] = rms_norm::forward(x, gain, 1e-5);
  const Twins expected = quantise::quantise(y, c.how, c.orientation);
  const auto got = quantise::norm(x, gain, 1e-5, c.how, c.orientation);
  RC_ASSERT(same(got.y, expected));
  RC_ASSERT(tests::same_bits(got.rstd, rstd));
  RC_ASSERT(got.amax.defined() == (c.how.scaling == Scaling::tensor));
  RC_ASSERT(!got.amax.defined() || tests::same_bits(got.amax, quantise::amax(y)));
  RC_ASSERT(same(quantise::norm_again(x, gain, rstd, c.how, c.orientation), expected));
  RC_ASSERT(same(quantise::norm_again(x, gain, rstd, c.how, c.orientation, got.amax), expected));
}

inline void fused_gate_is_the_gate_quantised(at::Device device, const std::vector<Scaling>& scalings) {
  const auto c = draw_fused(device, scalings);
  const auto activation =
      *rc::gen::element(spec::swiglu::Activation::silu, spec::swiglu::Activation::gelu_tanh);
  const at::Tensor gate_up = tests::normal({c.N, 2 * c.width}, c.seed, c.type, 3).to(device),
                   upstream = matrix_of(Entries::zeros, c.N, c.width, c.seed + 2, c.type).to(device);
  const at::Tensor y = swiglu::forward(gate_up, activation);
  RC_ASSERT(same(quantise::gate(gate_up, activation, c.how, c.orientation),
                 quantise::quantise(y, c.how, c.orientation)));

  const at::Tensor kept = gate_up.clone(), kept_upstream = upstream.clone();
  const Quantisation of_value{draw_format(), c.how.scaling};
  const at::Tensor gradient = swiglu::backward(upstream.clone(), gate_up.clone(), activation);
  const Twins expected = quantise::quantise(gradient, c.how, c.orientation);
  const auto with_value =
      quantise::gate_backward(upstream, gate_up, activation, c.how, c.orientation, of_value);
  RC_ASSERT(same(with_value.gate_up, expected));
  RC_ASSERT(same(with_value.gated, quantise::quantise(y, of_value, Orientation::columns).columns));
  const auto without =
      quantise::gate_backward(upstream, gate_up, activation, c.how, c.orientation, std::nullopt);
  RC_ASSERT(same(without.gate_up, expected) && !without.gated.defined());
  RC_ASSERT(tests::same_bits(gate_up, kept) && tests::same_bits(upstream, kept_upstream));
}

}  // namespace assay::impl::parity
