#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/qk_norm/qk_norm.hpp"

namespace assay::impl::qk_norm::cpu {

using impl::cpu::Math;

namespace {

/// Entries [begin, begin + length) of a token, which are normalised together: a head, or all query heads or
/// all key heads. Gradients of the gain are summed from entry `sums`.
template <class M>
struct Row {
  std::int64_t begin, length;
  const M* gain;
  std::int64_t sums;
};

/// Of a token; a row has as many entries as its gain.
template <class M>
std::vector<Row<M>> rows_of(const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t q_entries,
                            std::int64_t k_entries) {
  std::vector<Row<M>> rows;
  const auto add = [&](std::int64_t begin, std::int64_t entries, const at::Tensor& gain, std::int64_t sums) {
    for (std::int64_t row = 0; row < entries; row += gain.numel())
      rows.push_back({begin + row, gain.numel(), gain.const_data_ptr<M>(), sums});
  };
  add(0, q_entries, q_gain, 0);
  add(q_entries, k_entries, k_gain, q_gain.numel());
  return rows;
}

}  // namespace

Forward forward(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
                std::int64_t kv_heads, double eps) {
  const std::int64_t B = qkv.size(0), T = qkv.size(1), E = qkv.size(3), token = qkv.size(2) * E,
                     q_entries = heads * E, k_entries = kv_heads * E, normed = q_entries + k_entries,
                     statistics = q_entries / q_gain.numel() + k_entries / k_gain.numel();
  Forward out{at::empty_like(qkv),
              at::empty({B, T, statistics}, qkv.options().dtype(impl::cpu::math_type(qkv.scalar_type())))};
  impl::cpu::with_element(qkv.scalar_type(), "qk_norm", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* in = qkv.const_data_ptr<scalar_t>();
    auto* to = out.qkv.data_ptr<scalar_t>();
    auto* rstds = out.rstd.data_ptr<M>();
    const std::vector<Row<M>> rows = rows_of<M>(q_gain, k_gain, q_entries, k_entries);
    impl::cpu::for_rows(B * T, token, [&](std::int64_t n) {
      M* rstd_of = rstds + n * statistics;
      for (const Row<M>& row : rows) {
        const scalar_t* x = in + n * token + row.begin;
        const M* g = row.gain;
        scalar_t* y = to + n * token + row.begin;
        M squares = 0;
#pragma omp simd reduction(+ : squares)
        for (std::int64_t e = 0; e < row.length; ++e) squares += M(x[e]) * M(x[e]);
        const M rstd = M(1) / std::sqrt(squares / static_cast<M>(row.length) + static_cast<M>(eps));
#pragma omp simd
        for (std::int64_t e = 0; e < row.length; ++e) y[e] = scalar_t(M(x[e]) * rstd * g[e]);
        *rstd_of++ = rstd;
      }
      std::copy_n(in + n * token + normed, token - normed, to + n * token + normed);
    });
  });
  return out;
}

void backward(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
              const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
              at::Tensor dk_gain) {
  const std::int64_t N = qkv.size(0) * qkv.size(1), E = qkv.size(3), token = qkv.size(2) * E,
                     q_sums = q_gain.numel(), k_sums = k_gain.numel(), statistics = rstd.size(2);
  impl::cpu::with_element(qkv.scalar_type(), "qk_norm_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* in = qkv.const_data_ptr<scalar_t>();
    auto* gradient = dqkv.data_ptr<scalar_t>();
    const auto* rstds = rstd.const_data_ptr<M>();
    const std::vector<Row<M>> rows = rows_of<M>(q_gain, k_gain, heads * E, kv_heads * E);
    std::vector<M> dgains(static_cast<std::size_t>(q_sums + k_sums), M(0));  // of q, then of k
    impl::cpu::sum_over_rows<M>(N, q_sums + k_sums, dgains.data(), [&](std::int64_t n, M* sums) {
      const M* rstd_of = rstds + n * statistics;
      for (const Row<M>& row : rows) {
        const scalar_t* x = in + n * token + row.begin;
        const M* g = row.gain;
        scalar_t* dy = gradient + n * token + row.begin;
        M* dgain = sums + row.sums;
        const M r = *rstd_of++;
        M projection = 0;  // mean over e of dy * g * xhat
#pragma omp simd reduction(+ : projection)
        for (std::int64_t e = 0; e < row.length; ++e) {
          const M product = M(dy[e]) * (M(x[e]) * r);
          dgain[e] += product;
          projection += product * g[e];
        }
        projection /= static_cast<M>(row.length);
#pragma omp simd
        for (std::int64_t e = 0; e < row.length; ++e)
          dy[e] = scalar_t(r * (M(dy[e]) * g[e] - M(x[e]) * r * projection));
      }
    });
    auto *dq = dq_gain.data_ptr<M>(), *dk = dk_gain.data_ptr<M>();
    for (std::int64_t e = 0; e < q_sums; ++e) dq[e] += dgains[static_cast<std::size_t>(e)];
    for (std::int64_t e = 0; e < k_sums; ++e) dk[e] += dgains[static_cast<std::size_t>(q_sums + e)];
  });
}

}  // namespace assay::impl::qk_norm::cpu
