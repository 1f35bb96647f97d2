#include "reference/ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/counted.hpp"

namespace assay::reference::attention {

namespace {
template <class S>
spec::attention::Shape checked_shape(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                                     const spec::attention::Mask& mask) {
  const spec::attention::Shape s{.B = q.extent(0),
                                 .T = q.extent(1),
                                 .H = q.extent(2),
                                 .K = k.extent(2),
                                 .E = q.extent(3),
                                 .W = v.extent(3),
                                 .S = k.extent(1)};
  spec::attention::check_extents("q", q.shape(), {s.B, s.T, s.H, s.E});
  spec::attention::check_extents("k", k.shape(), {s.B, s.keys(), s.K, s.E});
  spec::attention::check_extents("v", v.shape(), {s.B, s.keys(), s.K, s.value_dim()});
  spec::attention::check(s, mask);
  return s;
}

/// sum_e a_{i+e} b_{j+e} over `entries` entries
template <class S>
S dot(const Tensor<S>& a, Index i, const Tensor<S>& b, Index j, Index entries) {
  S sum = 0;
  for (Index e = 0; e < entries; ++e) sum += a[i + e] * b[j + e];
  return sum;
}

/// One query row: its elements in q and y, and the keys and the key/value head it reads.
struct Row {
  Index b, h, t;
  Index first, last;  ///< visible keys
  spec::attention::Shape shape;
  Index query() const { return ((b * shape.T + t) * shape.H + h) * shape.E; }   ///< offset of q(b, t, h, 0)
  Index output() const { return ((b * shape.T + t) * shape.H + h) * shape.W; }  ///< offset of y(b, t, h, 0)
  /// Number of the head g(h) of token s among all key/value heads.
  Index head(Index s) const { return (b * shape.keys() + s) * shape.K + h / (shape.H / shape.K); }
  Index key(Index s) const { return head(s) * shape.E; }    ///< offset of k(b, s, g(h), 0)
  Index value(Index s) const { return head(s) * shape.W; }  ///< offset of v(b, s, g(h), 0)
};

template <class Visit>
void for_each_row(const spec::attention::Shape& s, const spec::attention::Mask& mask, Visit&& visit) {
  for (Index b = 0; b < s.B; ++b) {
    for (Index t = 0; t < s.T; ++t) {
      const Index first = spec::attention::first_visible(s, mask, b, t),
                  last = spec::attention::last_visible(s, mask, t);
      for (Index h = 0; h < s.H; ++h) visit(Row{b, h, t, first, last, s});
    }
  }
}

double scale_of(Index E, double factor) { return factor / std::sqrt(static_cast<double>(E)); }
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                   const spec::attention::Mask& mask, double factor) {
  using std::exp, std::log;
  const auto shape = checked_shape(q, k, v, mask);
  const Index E = shape.E, W = shape.W;
  const S scale = scale_of(E, factor);

  Forward<S> out{Tensor<S>({shape.B, shape.T, shape.H, W}), Tensor<S>({shape.B, shape.H, shape.T})};
  for_each_row(shape, mask, [&](const Row& row) {
    std::vector<S> scores;
    for (Index s = row.first; s <= row.last; ++s)
      scores.push_back(scale * dot(q, row.query(), k, row.key(s), E));
    const S largest = *std::max_element(scores.begin(), scores.end());
    S sum = 0;
    for (Index s = row.first; s <= row.last; ++s) {
      const S weight = exp(scores[static_cast<std::size_t>(s - row.first)] - largest);
      sum += weight;
      for (Index w = 0; w < W; ++w) out.y[row.output() + w] += weight * v[row.value(s) + w];
    }
    for (Index w = 0; w < W; ++w) out.y[row.output() + w] /= sum;
    out.lse(row.b, row.h, row.t) = largest + log(sum);
  });
  return out;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                     const Forward<S>& saved, const spec::attention::Mask& mask, double factor) {
  using std::exp;
  const auto shape = checked_shape(q, k, v, mask);
  const Index E = shape.E, W = shape.W;
  spec::attention::check_extents("dy", dy.shape(), {shape.B, shape.T, shape.H, W});
  spec::attention::check_extents("y", saved.y.shape(), dy.shape());
  spec::attention::check_extents("lse", saved.lse.shape(), {shape.B, shape.H, shape.T});
  const S scale = scale_of(E, factor);

  Backward<S> gradient{Tensor<S>(q.shape()), Tensor<S>(k.shape()), Tensor<S>(v.shape())};
  for_each_row(shape, mask, [&](const Row& row) {
    const S delta = dot(dy, row.output(), saved.y, row.output(), W);
    const S lse = saved.lse(row.b, row.h, row.t);
    for (Index s = row.first; s <= row.last; ++s) {
      const Index key = row.key(s), value = row.value(s);
      const S p = exp(scale * dot(q, row.query(), k, key, E) - lse);
      const S dp = dot(dy, row.output(), v, value, W);
      const S dscore = p * (dp - delta) * scale;
      for (Index e = 0; e < E; ++e) {
        gradient.dq[row.query() + e] += dscore * k[key + e];
        gradient.dk[key + e] += dscore * q[row.query() + e];
      }
      for (Index w = 0; w < W; ++w) gradient.dv[value + w] += p * dy[row.output() + w];
    }
  });
  return gradient;
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                 const spec::attention::Mask&, double);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                  const spec::attention::Mask&, double);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Tensor<double>&, const Forward<double>&,
                                   const spec::attention::Mask&, double);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Tensor<Counted>&, const Forward<Counted>&,
                                    const spec::attention::Mask&, double);

}  // namespace assay::reference::attention
