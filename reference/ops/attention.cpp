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
  const spec::attention::Shape s{
      .B = q.extent(0), .T = q.extent(1), .H = q.extent(2), .K = k.extent(2), .E = q.extent(3)};
  spec::attention::check_extents("q", q.shape(), {s.B, s.T, s.H, s.E});
  spec::attention::check_extents("k", k.shape(), {s.B, s.T, s.K, s.E});
  spec::attention::check_extents("v", v.shape(), {s.B, s.T, s.K, s.E});
  spec::attention::check(s, mask);
  return s;
}

/// sum_e a_{i+e} b_{j+e}
template <class S>
S dot(const Tensor<S>& a, Index i, const Tensor<S>& b, Index j, Index E) {
  S sum = 0;
  for (Index e = 0; e < E; ++e) sum += a[i + e] * b[j + e];
  return sum;
}

/// One query row: its element in q, and the tokens and the key/value head it reads.
struct Row {
  Index b, h, t;
  Index query;  ///< offset of q(b, t, h, 0)
  Index first;  ///< first visible token; the last one is t
  spec::attention::Shape shape;
  /// Offset of k(b, s, g(h), 0).
  Index key(Index s) const { return ((b * shape.T + s) * shape.K + h / (shape.H / shape.K)) * shape.E; }
};

template <class Visit>
void for_each_row(const spec::attention::Shape& s, const spec::attention::Mask& mask, Visit&& visit) {
  for (Index b = 0; b < s.B; ++b) {
    for (Index t = 0; t < s.T; ++t) {
      const Index first = spec::attention::first_visible(s, mask, b, t);
      for (Index h = 0; h < s.H; ++h) visit(Row{b, h, t, ((b * s.T + t) * s.H + h) * s.E, first, s});
    }
  }
}

double scale_of(Index E) { return 1 / std::sqrt(static_cast<double>(E)); }
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                   const spec::attention::Mask& mask) {
  using std::exp, std::log;
  const auto shape = checked_shape(q, k, v, mask);
  const Index E = shape.E;
  const S scale = scale_of(E);

  Forward<S> out{Tensor<S>(q.shape()), Tensor<S>({shape.B, shape.H, shape.T})};
  for_each_row(shape, mask, [&](const Row& row) {
    std::vector<S> scores;
    for (Index s = row.first; s <= row.t; ++s) scores.push_back(scale * dot(q, row.query, k, row.key(s), E));
    const S largest = *std::max_element(scores.begin(), scores.end());
    S sum = 0;
    for (Index s = row.first; s <= row.t; ++s) {
      const S weight = exp(scores[static_cast<std::size_t>(s - row.first)] - largest);
      sum += weight;
      for (Index e = 0; e < E; ++e) out.y[row.query + e] += weight * v[row.key(s) + e];
    }
    for (Index e = 0; e < E; ++e) out.y[row.query + e] /= sum;
    out.lse(row.b, row.h, row.t) = largest + log(sum);
  });
  return out;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& v,
                     const Forward<S>& saved, const spec::attention::Mask& mask) {
  using std::exp;
  const auto shape = checked_shape(q, k, v, mask);
  spec::attention::check_extents("dy", dy.shape(), q.shape());
  spec::attention::check_extents("y", saved.y.shape(), q.shape());
  spec::attention::check_extents("lse", saved.lse.shape(), {shape.B, shape.H, shape.T});
  const Index E = shape.E;
  const S scale = scale_of(E);

  Backward<S> gradient{Tensor<S>(q.shape()), Tensor<S>(k.shape()), Tensor<S>(v.shape())};
  for_each_row(shape, mask, [&](const Row& row) {
    const S delta = dot(dy, row.query, saved.y, row.query, E);
    const S lse = saved.lse(row.b, row.h, row.t);
    for (Index s = row.first; s <= row.t; ++s) {
      const Index key = row.key(s);
      const S p = exp(scale * dot(q, row.query, k, key, E) - lse);
      const S dp = dot(dy, row.query, v, key, E);
      const S dscore = p * (dp - delta) * scale;
      for (Index e = 0; e < E; ++e) {
        gradient.dq[row.query + e] += dscore * k[key + e];
        gradient.dk[key + e] += dscore * q[row.query + e];
        gradient.dv[key + e] += p * dy[row.query + e];
      }
    }
  });
  return gradient;
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                 const spec::attention::Mask&);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                  const spec::attention::Mask&);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Tensor<double>&, const Forward<double>&,
                                   const spec::attention::Mask&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Tensor<Counted>&, const Forward<Counted>&,
                                    const spec::attention::Mask&);

}  // namespace assay::reference::attention
