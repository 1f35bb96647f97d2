// Exact softmax over whole rows of a tile of query tokens; keys after the tile and before the first that it
// sees are skipped. One thread works on one (sequence, key/value head), so that no sum depends on the number
// of threads.
#include <ATen/ATen.h>

#include <atomic>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/cpu_math.hpp"
#include "impl/ops/gemm/cpu_gemm.hpp"

namespace assay::impl::attention::cpu {

using impl::cpu::Lanes;
using impl::cpu::Math;
using impl::cpu::multiply;
using impl::cpu::padded;

namespace {
constexpr std::int64_t tile = tile_rows;

/// Multiply-adds of one pass over all threads.
struct Work {
  std::atomic<std::int64_t> scores = 0, values = 0, scores_again = 0;
};

/// First key that each query sees: the beginning of its document or window. [B * T]
std::vector<std::int64_t> first_visible(const Heads& x, const Mask& mask) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(x.B * x.T), 0),
      begins(static_cast<std::size_t>(x.S), 0);
  const at::Tensor& numbers = mask.documents.numbers;
  const auto* document = numbers.defined() ? numbers.const_data_ptr<std::int32_t>() : nullptr;
  for (std::int64_t b = 0; b < x.B; ++b) {
    for (std::int64_t s = 1; document && s < x.S; ++s)
      begins[s] = document[b * x.S + s] != document[b * x.S + s - 1] ? s : begins[s - 1];
    for (std::int64_t t = 0; t < x.T; ++t) {
      const std::int64_t at = mask.first + t;
      std::int64_t& of_query = first[b * x.T + t];
      if (document) of_query = begins[at];
      if (mask.window > 0) of_query = std::max(of_query, at - mask.window + 1);
    }
  }
  return first;
}

/// Rows of E elements, `from_row` and `to_row` apart, times `factor` of each; other columns of `to` are left
/// as they are.
template <class From, class To, class Factor>
void copy_rows(std::int64_t rows, std::int64_t E, const From* from, std::int64_t from_row, To* to,
               std::int64_t to_row, const Factor& factor) {
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t e = 0; e < E; e += Lanes<Math<From>>::count)
      impl::cpu::store(to + t * to_row + e, impl::cpu::load(from + t * from_row + e, E - e) * factor(t),
                       E - e);
}
template <class From, class To>
void copy_rows(std::int64_t rows, std::int64_t E, const From* from, std::int64_t from_row, To* to,
               std::int64_t to_row) {
  copy_rows(rows, E, from, from_row, to, to_row, [](std::int64_t) { return Math<From>(1); });
}

/// to[e][t] = from[t][e].
template <class T, class M>
void pack_transposed(std::int64_t tokens, std::int64_t E, const T* from, std::int64_t stride, M* to,
                     std::int64_t row) {
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t e = 0; e < E; ++e) to[e * row + t] = M(from[t * stride + e]);
}

/// Half-open ranges of one tile: query tokens, the keys that the last of them sees, and the key columns that
/// its products run over.
template <class M>
struct Tile {
  std::int64_t t0, t1, keys, s0, s1;
  Tile(std::int64_t begin, const Heads& x, std::int64_t first, const std::int64_t* starts)
      : t0(begin),
        t1(std::min(x.T, begin + tile)),
        keys(std::min(x.S, first + t1)),
        s0(starts[begin] / impl::cpu::column_block<M> * impl::cpu::column_block<M>),
        s1(padded<M>(keys)) {}
  std::int64_t rows() const { return t1 - t0; }
};

/// Hides the columns that a row's query, which sees keys `first` to `last`, does not see, up to the next
/// multiple of the lanes, with `value`.
template <class M>
void hide(M* row, const Tile<M>& now, std::int64_t first, std::int64_t last, std::int64_t end, M value) {
  std::fill(row + now.s0, row + first, value);
  std::fill(row + last + 1, row + end, value);
}

/// End of the columns up to key `last`, a multiple of the lanes. Beyond it, up to the tile's end, rows are
/// zeroed.
template <class M>
std::int64_t lanes_end(std::int64_t last) {
  return (last / Lanes<M>::count + 1) * Lanes<M>::count;
}

/// Turns a row of scores into exponentials of scale * (score - largest), 0 where its query does not look.
template <class M>
struct Softmax {
  M largest, sum;
  Softmax(M* row, const Tile<M>& now, std::int64_t first, std::int64_t last, M scale) {
    using Lane = Lanes<M>;
    const std::int64_t end = lanes_end<M>(last);
    hide(row, now, first, last, end, -std::numeric_limits<M>::infinity());
    auto top = Lane::load(row + now.s0);
    for (std::int64_t s = now.s0; s < end; s += Lane::count) {
      const auto scores = Lane::load(row + s);
      top = scores > top ? scores : top;
    }
    largest = impl::cpu::largest_of<M>(top);
    auto sums = Lane::all(0);
    for (std::int64_t s = now.s0; s < end; s += Lane::count) {
      const auto powers = impl::cpu::exponential((Lane::load(row + s) - largest) * scale);
      Lane::store(row + s, powers);
      sums += powers;
    }
    sum = impl::cpu::sum_of<M>(sums);
    std::fill(row + end, row + std::max(end, now.keys), M(0));
  }
};

/// Turns scores into probabilities exp(scale * score - lse) and their upstream gradient into that of the
/// score before scaling: scale * p * (dp - sum over s of p * dp).
template <class M>
void score_gradient(M* row, M* drow, const Tile<M>& now, std::int64_t first, std::int64_t last, M scale,
                    M lse) {
  using Lane = Lanes<M>;
  const std::int64_t end = lanes_end<M>(last);
  hide(row, now, first, last, end, -std::numeric_limits<M>::infinity());
  hide(drow, now, first, last, end, M(0));
  auto sums = Lane::all(0);
  for (std::int64_t s = now.s0; s < end; s += Lane::count) {
    const auto probabilities = impl::cpu::exponential(Lane::load(row + s) * scale - lse);
    Lane::store(row + s, probabilities);
    sums += probabilities * Lane::load(drow + s);
  }
  const M projection = impl::cpu::sum_of<M>(sums);
  for (std::int64_t s = now.s0; s < end; s += Lane::count)
    Lane::store(drow + s, Lane::load(row + s) * (Lane::load(drow + s) - projection) * scale);
  for (M* each : {row, drow}) std::fill(each + end, each + std::max(end, now.keys), M(0));
}
/// The first element of head `head` in each of a sequence's tokens, `row` apart.
template <class T>
struct Rows {
  T* first;
  std::int64_t row;
  template <class Tensor>
  Rows(T* data, const Tensor& x, std::int64_t b, std::int64_t head)
      : first(data + b * x.stride(0) + head * x.stride(2)), row(x.stride(1)) {}
};
}  // namespace

Forward forward(const Heads& x, const Mask& mask) {
  const std::int64_t T = x.T, S = x.S, E = x.E, W = x.W, group = x.H / x.K;
  Forward out{at::empty({x.B, T, x.H, W}, x.q.options()),
              at::empty({x.B, x.H, T}, x.q.options().dtype(impl::cpu::math_type(x.q.scalar_type())))};
  const auto starts = first_visible(x, mask);
  Work work;
  impl::cpu::with_element(x.q.scalar_type(), "attention", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const std::int64_t Sp = padded<M>(S), Wp = padded<M>(W);
    const M scale = static_cast<M>(x.scale);
    const auto *qs = x.q.const_data_ptr<scalar_t>(), *ks = x.k.const_data_ptr<scalar_t>(),
               *vs = x.v.const_data_ptr<scalar_t>();
    auto* y = out.y.data_ptr<scalar_t>();
    M* lse = out.lse.data_ptr<M>();
    impl::cpu::for_ranges(x.B * x.K, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<M> keys_(E * Sp), values_(S * Wp), q_(tile * E), p_(tile * Sp), o_(tile * Wp);
      M shares[tile];
      std::int64_t scores = 0, sums = 0;
      M *keys = keys_.data(), *values = values_.data(), *q = q_.data(), *p = p_.data(), *o = o_.data();
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t b = item / x.K, kv = item % x.K;
        const std::int64_t* first = starts.data() + b * T;
        const Rows key(ks, x.k, b, kv), value(vs, x.v, b, kv);
        pack_transposed(S, E, key.first, key.row, keys, Sp);
        copy_rows(S, W, value.first, value.row, values, Wp);
        for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
          const Rows query(qs, x.q, b, h);
          for (std::int64_t t0 = 0; t0 < T; t0 += tile) {
            const Tile<M> now(t0, x, mask.first, first);
            copy_rows(now.rows(), E, query.first + t0 * query.row, query.row, q, E);
            scores +=
                multiply<M>(now.rows(), now.s1 - now.s0, E, {q, E, 1}, {keys + now.s0, Sp}, {p + now.s0, Sp});
            for (std::int64_t t = t0; t < now.t1; ++t) {
              const Softmax<M> row(p + (t - t0) * Sp, now, first[t], std::min(mask.first + t, S - 1), scale);
              shares[t - t0] = 1 / row.sum;
              lse[(b * x.H + h) * T + t] = row.largest * scale + std::log(row.sum);
            }
            sums += multiply<M>(now.rows(), Wp, now.keys - now.s0, {p + now.s0, Sp, 1},
                                {values + now.s0 * Wp, Wp}, {o, Wp});
            copy_rows(now.rows(), W, o, Wp, y + ((b * T + t0) * x.H + h) * W, x.H * W,
                      [&](std::int64_t t) { return shares[t]; });
          }
        }
      }
      work.scores += scores;
      work.values += sums;
    });
  });
  metrics::report_flops(spec::FlopComponent::attention_scores, 2 * Count(work.scores));
  metrics::report_flops(spec::FlopComponent::attention_values, 2 * Count(work.values));
  return out;
}

Gradients backward(const at::Tensor& dy, const Heads& x, const Forward& saved, const Mask& mask) {
  const std::int64_t T = x.T, S = x.S, E = x.E, W = x.W, group = x.H / x.K;
  Gradients out = gradients_like(x);
  const auto starts = first_visible(x, mask);
  Work work;
  impl::cpu::with_element(x.q.scalar_type(), "attention_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const std::int64_t Sp = padded<M>(S), Ep = padded<M>(E), Wp = padded<M>(W);
    const M scale = static_cast<M>(x.scale);
    const auto *qs = x.q.const_data_ptr<scalar_t>(), *ks = x.k.const_data_ptr<scalar_t>(),
               *vs = x.v.const_data_ptr<scalar_t>(), *upstream = dy.const_data_ptr<scalar_t>();
    auto *dqs = out.dq.data_ptr<scalar_t>(), *dks = out.dk.data_ptr<scalar_t>(),
         *dvs = out.dv.data_ptr<scalar_t>();
    const M* lse = saved.lse.const_data_ptr<M>();
    impl::cpu::for_ranges(x.B * x.K, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<M> keysT_(E * Sp), valuesT_(W * Sp), keys_(S * Ep), dk_(S * Ep), dv_(S * Wp);
      std::vector<M> q_(tile * Ep), do_(tile * Wp), dq_(tile * Ep), p_(tile * Sp), ds_(tile * Sp);
      M *keysT = keysT_.data(), *valuesT = valuesT_.data(), *keys = keys_.data(), *dk = dk_.data(),
        *dv = dv_.data();
      std::int64_t again = 0, scores = 0, sums = 0;
      M *q = q_.data(), *dO = do_.data(), *dq = dq_.data(), *p = p_.data(), *ds = ds_.data();
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t b = item / x.K, kv = item % x.K;
        const std::int64_t* first = starts.data() + b * T;
        const Rows key(ks, x.k, b, kv), value(vs, x.v, b, kv);
        pack_transposed(S, E, key.first, key.row, keysT, Sp);
        pack_transposed(S, W, value.first, value.row, valuesT, Sp);
        copy_rows(S, E, key.first, key.row, keys, Ep);
        std::fill(dk_.begin(), dk_.end(), M(0));
        std::fill(dv_.begin(), dv_.end(), M(0));
        for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
          const Rows query(qs, x.q, b, h);
          const Rows d_query(dqs, out.dq, b, h);
          for (std::int64_t t0 = 0; t0 < T; t0 += tile) {
            const Tile<M> now(t0, x, mask.first, first);
            const std::int64_t rows = now.rows(), seen = now.keys - now.s0;
            copy_rows(rows, E, query.first + t0 * query.row, query.row, q, Ep);
            copy_rows(rows, W, upstream + ((b * T + t0) * x.H + h) * W, x.H * W, dO, Wp);
            again +=
                multiply<M>(rows, now.s1 - now.s0, E, {q, Ep, 1}, {keysT + now.s0, Sp}, {p + now.s0, Sp});
            sums +=
                multiply<M>(rows, now.s1 - now.s0, W, {dO, Wp, 1}, {valuesT + now.s0, Sp}, {ds + now.s0, Sp});
            for (std::int64_t t = t0; t < now.t1; ++t) {
              score_gradient(p + (t - t0) * Sp, ds + (t - t0) * Sp, now, first[t],
                             std::min(mask.first + t, S - 1), scale, lse[(b * x.H + h) * T + t]);
            }
            scores += multiply<M>(rows, Ep, seen, {ds + now.s0, Sp, 1}, {keys + now.s0 * Ep, Ep}, {dq, Ep});
            scores +=
                multiply<M, true>(seen, Ep, rows, {ds + now.s0, 1, Sp}, {q, Ep}, {dk + now.s0 * Ep, Ep});
            sums += multiply<M, true>(seen, Wp, rows, {p + now.s0, 1, Sp}, {dO, Wp}, {dv + now.s0 * Wp, Wp});
            copy_rows(rows, E, dq, Ep, d_query.first + t0 * d_query.row, d_query.row);
          }
        }
        const Rows d_key(dks, out.dk, b, kv), d_value(dvs, out.dv, b, kv);
        copy_rows(S, E, dk, Ep, d_key.first, d_key.row);
        copy_rows(S, W, dv, Wp, d_value.first, d_value.row);
      }
      work.scores_again += again;
      work.scores += scores;
      work.values += sums;
    });
  });
  {
    const metrics::FlopScope scope(spec::ExecutedPass::recompute);
    metrics::report_flops(spec::FlopComponent::attention_scores, 2 * Count(work.scores_again));
  }
  metrics::report_flops(spec::FlopComponent::attention_scores, 2 * Count(work.scores));
  metrics::report_flops(spec::FlopComponent::attention_values, 2 * Count(work.values));
  return out;
}

}  // namespace assay::impl::attention::cpu
