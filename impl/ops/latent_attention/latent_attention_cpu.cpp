#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/latent_attention/latent_attention.hpp"

namespace assay::impl::latent_attention::cpu {

namespace {

/// The turn of one token's pairs.
template <class M>
struct TokenTurn {
  const M *cosine, *sine;
  M sign;
  std::int64_t half;
  Pairs pairs;

  TokenTurn(const rope::Table& table, const std::int32_t* positions, std::int64_t n, const Shape& s,
            Pairs how, bool inverse)
      : sign(inverse ? M(-1) : M(1)), half(s.R / 2), pairs(how) {
    const std::int64_t row = (positions ? positions[n] : n % s.T) * half;
    cosine = table.cosine.const_data_ptr<M>() + row;
    sine = table.sine.const_data_ptr<M>() + row;
  }
  template <class From, class To>
  void operator()(const From* from, To* to) const {
    const std::int64_t step = pairs == Pairs::halves ? 1 : 2, apart = pairs == Pairs::halves ? half : 1;
    for (std::int64_t e = 0; e < half; ++e) {
      const M a = M(from[e * step]), b = M(from[e * step + apart]), s = sign * sine[e];
      to[e * step] = To(a * cosine[e] - b * s);
      to[e * step + apart] = To(b * cosine[e] + a * s);
    }
  }
};

const std::int32_t* positions_of(const at::Tensor& positions) {
  return positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr;
}

}  // namespace

at::Tensor expand(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                  const Shape& s, Pairs pairs, const rope::Table& table, const at::Tensor& positions) {
  const std::int64_t N = s.B * s.T, kept = s.E - s.R, columns = s.H * (2 * s.E + s.W);
  at::Tensor qkv = at::empty({N, columns}, query.options());
  impl::cpu::with_element(query.scalar_type(), "latent_attention", [&](auto element) {
    using scalar_t = decltype(element);
    const auto *q = query.const_data_ptr<scalar_t>(), *kv = key_value.const_data_ptr<scalar_t>(),
               *shared = shared_key.const_data_ptr<scalar_t>();
    auto* out = qkv.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, columns, [&](std::int64_t n) {
      const TokenTurn<impl::cpu::Math<scalar_t>> turn(table, positions_of(positions), n, s, pairs, false);
      scalar_t *to_q = out + n * columns, *to_k = to_q + s.H * s.E, *to_v = to_k + s.H * s.E;
      const scalar_t *from_q = q + n * s.H * s.E, *from_kv = kv + n * s.H * (kept + s.W);
      for (std::int64_t h = 0; h < s.H; ++h) {
        std::copy_n(from_q, kept, to_q);
        turn(from_q + kept, to_q + kept);
        std::copy_n(from_kv, kept, to_k);
        turn(shared + n * s.R, to_k + kept);
        std::copy_n(from_kv + kept, s.W, to_v);
        from_q += s.E, from_kv += kept + s.W, to_q += s.E, to_k += s.E, to_v += s.W;
      }
    });
  });
  return qkv;
}

Gradient expand_backward(const at::Tensor& dqkv, const Shape& s, Pairs pairs, const rope::Table& table,
                         const at::Tensor& positions) {
  const std::int64_t N = s.B * s.T, kept = s.E - s.R, columns = s.H * (2 * s.E + s.W);
  Gradient out{at::empty({N, s.H * s.E}, dqkv.options()), at::empty({N, s.H * (kept + s.W)}, dqkv.options()),
               at::empty({N, s.R}, dqkv.options())};
  impl::cpu::with_element(dqkv.scalar_type(), "latent_attention_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = impl::cpu::Math<scalar_t>;
    const auto* in = dqkv.const_data_ptr<scalar_t>();
    auto *q = out.query.data_ptr<scalar_t>(), *kv = out.key_value.data_ptr<scalar_t>(),
         *shared = out.shared_key.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, columns, [&](std::int64_t n) {
      const TokenTurn<M> turn(table, positions_of(positions), n, s, pairs, true);
      const scalar_t *from_q = in + n * columns, *from_k = from_q + s.H * s.E, *from_v = from_k + s.H * s.E;
      scalar_t *to_q = q + n * s.H * s.E, *to_kv = kv + n * s.H * (kept + s.W);
      std::vector<M> sums(static_cast<std::size_t>(s.R), M(0));
      for (std::int64_t h = 0; h < s.H; ++h) {
        std::copy_n(from_q, kept, to_q);
        turn(from_q + kept, to_q + kept);
        std::copy_n(from_k, kept, to_kv);
        for (std::int64_t e = 0; e < s.R; ++e) sums[static_cast<std::size_t>(e)] += M(from_k[kept + e]);
        std::copy_n(from_v, s.W, to_kv + kept);
        from_q += s.E, from_k += s.E, from_v += s.W, to_q += s.E, to_kv += kept + s.W;
      }
      turn(sums.data(), shared + n * s.R);
    });
  });
  return out;
}

}  // namespace assay::impl::latent_attention::cpu
