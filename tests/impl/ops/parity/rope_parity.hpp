#pragma once
// rope against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/rope/rope.hpp"
#include "reference/ops/rope.hpp"
#include "spec/ops/rope/rope.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Table entry 1 rounding, product 1, sum 1; both sides form the angle in double, each with one rounding of
/// it. `x_bound`: how far x is off, an entry each; empty: exact. `factor`: of cosines and sines.
inline tests::Allowed rope_bound(tests::Rounding rounding, const reference::Tensor<double>& x,
                                 const reference::Tensor<double>& y, const reference::Ids& positions,
                                 const std::vector<double>& frequencies, std::vector<double> x_bound = {},
                                 double factor = 1) {
  x_bound.resize(static_cast<std::size_t>(x.size()));
  const Index E = x.extent(3), heads = x.extent(2);
  return tests::each(x.size(), [&](Index i) {
    const Index e = i % E, other = e < E / 2 ? i + E / 2 : i - E / 2;
    const double angle = static_cast<double>(positions[static_cast<std::size_t>(i / (E * heads))]) *
                         frequencies[static_cast<std::size_t>(e % (E / 2))];
    const double cosine = factor * std::abs(std::cos(angle)), sine = factor * std::abs(std::sin(angle));
    const double own_off = x_bound[static_cast<std::size_t>(i)],
                 other_off = x_bound[static_cast<std::size_t>(other)], own = std::abs(x[i]) + own_off,
                 partner = std::abs(x[other]) + other_off;
    const double terms = own * cosine + partner * sine, off = own_off * cosine + other_off * sine;
    const double turned = 2 * unit_roundoff(Dtype::f64) * factor * angle * (own + partner);
    return rounding.stored(y[i], off + rounding.gamma(3) * terms + turned);
  });
}

/// Half of them by yarn, which slows some frequencies and lengthens what it turns.
inline std::optional<spec::RopeScaling> draw_scaling() {
  if (*rc::gen::arbitrary<bool>()) return {};
  return spec::RopeScaling{.factor = *rc::gen::element(1.0, 4.0, 40.0),
                           .original_context = *rc::gen::element<std::int64_t>(64, 512, 4096),
                           .kind = spec::RopeScalingKind::yarn,
                           .mscale = *rc::gen::element(0.0, 0.7),
                           .mscale_all_dim = *rc::gen::element(0.0, 1.3)};
}

/// Drawn heads turned either way, against the reference.
inline void rope_matches_reference(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 12),
              E = 2 * tests::draw_extent(device, 12, 64);
  const Index heads = *rc::gen::inRange<Index>(1, 6), rotated = *rc::gen::inRange<Index>(1, heads + 1);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const bool restart = *rc::gen::arbitrary<bool>(), inverse = *rc::gen::arbitrary<bool>();
  const auto scaling = draw_scaling();
  const auto frequencies = spec::rope::inverse_frequencies(E, 10000, scaling);
  const spec::rope::Form form{.factor = spec::rope::attention_factor(scaling)};
  reference::Ids positions;
  for (Index n = 0; n < B * T; ++n) positions.push_back(restart ? *rc::gen::inRange<Index>(0, 300) : n % T);
  const at::Tensor x = tests::normal({B, T, heads, E}, seed, type);
  const auto table = rope::table(frequencies, 300, type, device, form.factor);
  const at::Tensor given =
      restart ? tests::integers(positions, at::kInt).view({B, T}).to(device) : at::Tensor();

  const auto turned = exact(x.narrow(2, 0, rotated));
  const auto expected = inverse ? reference::rope::backward(turned, positions, frequencies, form)
                                : reference::rope::forward(turned, positions, frequencies, form);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor y = x.to(device, /*non_blocking=*/false, /*copy=*/true);
    (generic ? rope::aten::rotate : rope::rotate)(y, rotated, table, given, inverse);
    ASSAY_RC_CLOSE(
        values(y.narrow(2, 0, rotated)), values(expected),
        rope_bound(tests::rounding_of(type), turned, expected, positions, frequencies, {}, form.factor));
    RC_ASSERT(tests::same_bits(y.narrow(2, rotated, heads - rotated), x.narrow(2, rotated, heads - rotated)));
  }
}

/// Drawn gradients of q, k and v, joined and turned back, against the reference. They lie apart, by token or
/// by head.
inline void rope_joined_backward_matches_reference(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 12),
              E = 2 * tests::draw_extent(device, 12, 64);
  const Index H = *rc::gen::inRange<Index>(1, 9), K = *rc::gen::inRange<Index>(1, 5);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const bool restart = *rc::gen::arbitrary<bool>(), by_head = *rc::gen::arbitrary<bool>();
  const auto frequencies = spec::rope::inverse_frequencies(E, 10000, {});
  reference::Ids positions;
  for (Index n = 0; n < B * T; ++n) positions.push_back(restart ? *rc::gen::inRange<Index>(0, 300) : n % T);
  const auto part = [&](Index heads, std::uint64_t key) {
    return tests::normal({B, T, heads, E}, key, type);
  };
  const at::Tensor dq = part(H, seed), dk = part(K, seed + 1), dv = part(K, seed + 2);
  const auto table = rope::table(frequencies, 300, type, device);
  const at::Tensor given =
      restart ? tests::integers(positions, at::kInt).view({B, T}).to(device) : at::Tensor();

  const auto turned = exact(at::cat({dq, dk}, 2));
  const auto expected = reference::rope::backward(turned, positions, frequencies);
  const auto on = [&](const at::Tensor& x) {
    const at::Tensor there = x.to(device);
    return by_head ? there.transpose(1, 2).contiguous().transpose(1, 2) : there;
  };
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor dqkv =
        (generic ? rope::aten::joined_backward : rope::joined_backward)(on(dq), on(dk), on(dv), table, given);
    RC_ASSERT(dqkv.is_contiguous() && dqkv.size(2) == H + 2 * K);
    ASSAY_RC_CLOSE(values(dqkv.narrow(2, 0, H + K)), values(expected),
                   rope_bound(tests::rounding_of(type), turned, expected, positions, frequencies));
    RC_ASSERT(tests::same_bits(dqkv.narrow(2, H + K, K), dv));
  }
}

}  // namespace assay::impl::parity
