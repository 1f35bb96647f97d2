#pragma once
// The step `expand` of latent attention against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/latent_attention/latent_attention.hpp"
#include "reference/ops/rope.hpp"
#include "spec/ops/rope/rope.hpp"
#include "tests/impl/ops/parity/rope_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

struct LatentDrawn {
  at::ScalarType type;
  at::Device device;
  /// On a GPU half of the cases have extents of whole vectors.
  bool even = device.is_cuda() && *rc::gen::arbitrary<bool>();
  Index unit = even ? 16 : 1;
  spec::latent_attention::Shape s{.B = *rc::gen::inRange<Index>(1, 3),
                                  .T = *rc::gen::inRange<Index>(1, 12),
                                  .H = *rc::gen::inRange<Index>(1, even ? 40 : 6)};
  spec::rope::Form form{.pairs = *rc::gen::element(spec::rope::Pairs::halves, spec::rope::Pairs::neighbours)};
  std::vector<double> frequencies;
  reference::Ids positions;
  rope::Table table;
  at::Tensor given;  ///< positions, undefined where token t has position t
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();

  LatentDrawn(at::ScalarType of, at::Device where) : type(of), device(where) {
    s.R = 2 * unit * *rc::gen::inRange<Index>(1, 5);
    s.E = s.R + unit * *rc::gen::inRange<Index>(1, 9);
    s.W = unit * *rc::gen::inRange<Index>(1, 9);
    const auto scaling = draw_scaling();
    frequencies = spec::rope::inverse_frequencies(s.R, 10000, scaling);
    form.factor = spec::rope::attention_factor(scaling);
    const bool restart = *rc::gen::arbitrary<bool>();
    for (Index n = 0; n < s.B * s.T; ++n)
      positions.push_back(restart ? *rc::gen::inRange<Index>(0, 300) : n % s.T);
    table = rope::table(frequencies, 300, type, device, form.factor);
    if (restart) given = tests::integers(positions, at::kInt).view({s.B, s.T}).to(device);
  }
  Index tokens() const { return s.B * s.T; }
  Index kept() const { return s.E - s.R; }
  at::Tensor draw(Index columns, std::uint64_t key) const {
    return tests::normal({tokens(), columns}, seed + key, type);
  }
  /// x [N, heads, R], turned as the reference turns it.
  reference::Tensor<double> turned(const at::Tensor& x, bool inverse) const {
    const auto heads = exact(x.reshape({s.B, s.T, -1, s.R}));
    return inverse ? reference::rope::backward(heads, positions, frequencies, form)
                   : reference::rope::forward(heads, positions, frequencies, form);
  }
  /// x [N, heads, R] with the pairs (e, e + R/2), in which rope_bound is stated.
  at::Tensor in_halves(const at::Tensor& x) const {
    return form.pairs == spec::rope::Pairs::halves
               ? x
               : x.unflatten(-1, {s.R / 2, 2}).transpose(-1, -2).flatten(-2);
  }
  /// `got` [N, heads, R] against the reference's turn of `x` [N, heads, R], which is off by `x_bound`.
  void expect_turned(const at::Tensor& got, const at::Tensor& x, bool inverse,
                     const std::vector<double>& x_bound = {}) const {
    const auto ours = in_halves(got).reshape({s.B, s.T, -1, s.R}),
               wanted = in_halves(tests::rounded(turned(x, inverse), at::kDouble));
    const auto expected = exact(wanted);
    ASSAY_RC_CLOSE(values(ours), values(expected),
                   rope_bound(tests::rounding_of(type), exact(in_halves(x).reshape({s.B, s.T, -1, s.R})),
                              expected, positions, frequencies, x_bound, form.factor));
  }
};

/// q | k | v from drawn projections: what is turned against the reference, all else bit for bit.
inline void latent_expand_matches_reference(at::Device device) {
  const LatentDrawn d(tests::draw_dtype(), device);
  const auto& s = d.s;
  const Index N = d.tokens(), kept = d.kept();
  const at::Tensor query = d.draw(s.H * s.E, 1), key_value = d.draw(s.H * (kept + s.W), 2),
                   shared = d.draw(s.R, 3);
  const at::Tensor q = query.view({N, s.H, s.E}), kv = key_value.view({N, s.H, kept + s.W});
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor qkv =
        (generic ? latent_attention::aten::expand : latent_attention::expand)(
            query.to(device), key_value.to(device), shared.to(device), s, d.form.pairs, d.table, d.given)
            .cpu();
    RC_ASSERT(qkv.is_contiguous() && qkv.sizes() == at::IntArrayRef({N, s.H * (2 * s.E + s.W)}));
    const auto part = [&](Index first, Index width) {
      return qkv.narrow(1, first, s.H * width).view({N, s.H, width});
    };
    const at::Tensor our_q = part(0, s.E), our_k = part(s.H * s.E, s.E), our_v = part(2 * s.H * s.E, s.W);
    RC_ASSERT(tests::same_bits(our_q.narrow(2, 0, kept), q.narrow(2, 0, kept)));
    RC_ASSERT(tests::same_bits(our_k.narrow(2, 0, kept), kv.narrow(2, 0, kept)));
    RC_ASSERT(tests::same_bits(our_v, kv.narrow(2, kept, s.W)));
    d.expect_turned(our_q.narrow(2, kept, s.R), q.narrow(2, kept, s.R), false);
    d.expect_turned(our_k.narrow(2, kept, 1 * s.R), shared.view({N, 1, s.R}).expand({N, s.H, s.R}), false);
  }
}

/// The gradients of the projections from a drawn one of q | k | v. That of the shared key is a sum over the
/// heads, off by H - 1 additions before it is turned.
inline void latent_expand_backward_matches_reference(at::Device device) {
  const LatentDrawn d(tests::draw_dtype(), device);
  const auto& s = d.s;
  const Index N = d.tokens(), kept = d.kept();
  const at::Tensor dqkv = d.draw(s.H * (2 * s.E + s.W), 4);
  const auto part = [&](Index first, Index width) {
    return dqkv.narrow(1, first, s.H * width).view({N, s.H, width});
  };
  const at::Tensor dq = part(0, s.E), dk = part(s.H * s.E, s.E), dv = part(2 * s.H * s.E, s.W);
  const at::Tensor of_heads = dk.narrow(2, kept, s.R).to(at::kDouble), sum = of_heads.sum(1, true),
                   sizes = d.in_halves(of_heads.abs().sum(1, true)).contiguous();
  const auto rounding = tests::rounding_of(d.type);
  std::vector<double> off(sizes.const_data_ptr<double>(), sizes.const_data_ptr<double>() + sizes.numel());
  for (double& each : off) each *= rounding.gamma(static_cast<double>(s.H));
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto gradient =
        (generic ? latent_attention::aten::expand_backward : latent_attention::expand_backward)(
            dqkv.to(device), s, d.form.pairs, d.table, d.given);
    RC_ASSERT(gradient.query.sizes() == at::IntArrayRef({N, s.H * s.E}));
    RC_ASSERT(gradient.key_value.sizes() == at::IntArrayRef({N, s.H * (kept + s.W)}));
    const at::Tensor our_q = gradient.query.cpu().view({N, s.H, s.E}),
                     our_kv = gradient.key_value.cpu().view({N, s.H, kept + s.W});
    RC_ASSERT(tests::same_bits(our_q.narrow(2, 0, kept), dq.narrow(2, 0, kept)));
    RC_ASSERT(tests::same_bits(our_kv.narrow(2, 0, kept), dk.narrow(2, 0, kept)));
    RC_ASSERT(tests::same_bits(our_kv.narrow(2, kept, s.W), dv));
    d.expect_turned(our_q.narrow(2, kept, s.R), dq.narrow(2, kept, s.R), true);
    d.expect_turned(gradient.shared_key.cpu().view({N, 1, s.R}), sum, true, off);
  }
}

}  // namespace assay::impl::parity
