#include "reference/ops/latent_attention.hpp"

#include "reference/counted.hpp"
#include "reference/matrices.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rope.hpp"

namespace assay::reference::latent_attention {

namespace {
using Sizes = spec::latent_attention::Shape;

template <class S>
void check_weights(const Weights<S>& w, const Sizes& s) {
  using spec::latent_attention::check_extents;
  if (s.Cq > 0) {
    check_extents("query_down", w.query_down.shape(), {s.Cq, s.D});
    check_extents("query_gain", w.query_gain.shape(), {s.Cq});
  } else {
    check_extents("query_down", w.query_down.shape(), {});
    check_extents("query_gain", w.query_gain.shape(), {});
  }
  check_extents("query_up", w.query_up.shape(), {s.H * s.E, s.Cq > 0 ? s.Cq : s.D});
  check_extents("key_value_down", w.key_value_down.shape(), {s.Ckv + s.R, s.D});
  check_extents("key_value_gain", w.key_value_gain.shape(), {s.Ckv});
  check_extents("key_value_up", w.key_value_up.shape(), {s.H * (s.E - s.R + s.W), s.Ckv});
}

template <class S>
void check_all(const Tensor<S>& x, const Weights<S>& w, const Sizes& s, const Setting& setting) {
  spec::latent_attention::check(s, setting.eps);
  spec::latent_attention::check_extents("x", x.shape(), {s.B, s.T, s.D});
  check_weights(w, s);
}

/// k [B, T, H, E] of the keys' other entries [B, T, H, E - R] and the turned shared key [B, T, 1, R].
template <class S>
Tensor<S> keys(const Tensor<S>& own, const Tensor<S>& shared, const Sizes& s) {
  Tensor<S> in_every_head({s.B, s.T, s.H, s.R});
  for (Index b = 0; b < s.B; ++b)
    for (Index t = 0; t < s.T; ++t)
      for (Index h = 0; h < s.H; ++h)
        for (Index r = 0; r < s.R; ++r) in_every_head(b, t, h, r) = shared(b, t, 0, r);
  return beside<S>({own, in_every_head}, 3);
}

/// Gradient of the turned shared key: the sum of its parts in all heads.
template <class S>
Tensor<S> shared_key_gradient(const Tensor<S>& dk, const Sizes& s) {
  Tensor<S> dr({s.B, s.T, 1, s.R});
  for (Index b = 0; b < s.B; ++b)
    for (Index t = 0; t < s.T; ++t)
      for (Index h = 0; h < s.H; ++h)
        for (Index r = 0; r < s.R; ++r) dr(b, t, 0, r) += dk(b, t, h, s.E - s.R + r);
  return dr;
}

/// dx by the queries, with the gradients of their weights.
template <class S>
Tensor<S> queries_backward(const Tensor<S>& dq, const Tensor<S>& x, const Weights<S>& w,
                           const Forward<S>& saved, const Sizes& s, const Setting& setting, Weights<S>& dw) {
  const Tensor<S>& input = s.Cq > 0 ? saved.query_norm.y : x;
  const auto up = linear::backward(dq.reshaped({s.B, s.T, s.H * s.E}), input, w.query_up, setting.precision);
  dw.query_up = up.dweight;
  if (s.Cq == 0) return up.dx;
  const auto norm = rms_norm::backward(up.dx, saved.query_compressed, w.query_gain, saved.query_norm.rstd);
  dw.query_gain = norm.dgain;
  const auto down = linear::backward(norm.dx, x, w.query_down, setting.precision);
  dw.query_down = down.dweight;
  return down.dx;
}

/// dx by the keys and values, of dk with the shared key turned, likewise.
template <class S>
Tensor<S> keys_and_values_backward(const Tensor<S>& dk, const Tensor<S>& dv, const Tensor<S>& x,
                                   const Weights<S>& w, const Forward<S>& saved, const Sizes& s,
                                   const Setting& setting, Weights<S>& dw) {
  const Index own = s.E - s.R;
  const Tensor<S> dup = beside<S>({columns(dk, 0, own), dv}, 3);
  const auto up = linear::backward(dup.reshaped({s.B, s.T, s.H * (own + s.W)}), saved.key_value_norm.y,
                                   w.key_value_up, setting.precision);
  dw.key_value_up = up.dweight;
  const auto norm =
      rms_norm::backward(up.dx, saved.key_value_compressed, w.key_value_gain, saved.key_value_norm.rstd);
  dw.key_value_gain = norm.dgain;

  const auto dr = rope::backward(shared_key_gradient(dk, s), setting.positions, setting.inverse_frequencies,
                                 setting.form);
  const Tensor<S> ddown = beside<S>({norm.dx, dr}, 2);
  const auto down = linear::backward(ddown, x, w.key_value_down, setting.precision);
  dw.key_value_down = down.dweight;
  return down.dx;
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& x, const Weights<S>& w, const Sizes& s, const Setting& setting) {
  check_all(x, w, s, setting);
  const Index own = s.E - s.R;  // entries of a head that are not turned
  const auto turned = [&](const Tensor<S>& heads) {
    return rope::forward(heads, setting.positions, setting.inverse_frequencies, setting.form);
  };

  Forward<S> out;
  if (s.Cq > 0) {
    out.query_compressed = linear::forward(x, w.query_down, setting.precision);
    out.query_norm = rms_norm::forward(out.query_compressed, w.query_gain, setting.eps);
  }
  const Tensor<S> q = linear::forward(s.Cq > 0 ? out.query_norm.y : x, w.query_up, setting.precision)
                          .reshaped({s.B, s.T, s.H, s.E});
  out.q = beside<S>({columns(q, 0, own), turned(columns(q, own, s.R))}, 3);

  const Tensor<S> down = linear::forward(x, w.key_value_down, setting.precision);
  out.key_value_compressed = columns(down, 0, s.Ckv);
  out.key_value_norm = rms_norm::forward(out.key_value_compressed, w.key_value_gain, setting.eps);
  const Tensor<S> up = linear::forward(out.key_value_norm.y, w.key_value_up, setting.precision)
                           .reshaped({s.B, s.T, s.H, own + s.W});
  const Tensor<S> shared = turned(columns(down, s.Ckv, s.R).reshaped({s.B, s.T, 1, s.R}));
  out.k = keys(columns(up, 0, own), shared, s);
  out.v = columns(up, own, s.W);
  out.attention = attention::forward(out.q, out.k, out.v, setting.mask, setting.score_factor);
  return out;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Weights<S>& w, const Forward<S>& saved,
                     const Sizes& s, const Setting& setting) {
  check_all(x, w, s, setting);
  spec::latent_attention::check_extents("dy", dy.shape(), {s.B, s.T, s.H, s.W});
  const auto d =
      attention::backward(dy, saved.q, saved.k, saved.v, saved.attention, setting.mask, setting.score_factor);
  const Index own = s.E - s.R;
  const auto turned_back =
      rope::backward(columns(d.dq, own, s.R), setting.positions, setting.inverse_frequencies, setting.form);
  const Tensor<S> dq = beside<S>({columns(d.dq, 0, own), turned_back}, 3);

  Backward<S> out;
  out.dx = queries_backward(dq, x, w, saved, s, setting, out.dweights);
  out.dx.flat() += keys_and_values_backward(d.dk, d.dv, x, w, saved, s, setting, out.dweights).flat();
  return out;
}

template Forward<double> forward(const Tensor<double>&, const Weights<double>&, const Sizes&, const Setting&);
template Forward<Counted> forward(const Tensor<Counted>&, const Weights<Counted>&, const Sizes&,
                                  const Setting&);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Weights<double>&,
                                   const Forward<double>&, const Sizes&, const Setting&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Weights<Counted>&,
                                    const Forward<Counted>&, const Sizes&, const Setting&);

}  // namespace assay::reference::latent_attention
