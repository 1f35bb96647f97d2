#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/qk_norm/qk_norm.hpp"

namespace assay::impl::qk_norm::cpu {

using impl::cpu::Math;

Forward forward(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
                std::int64_t kv_heads, double eps) {
  const std::int64_t B = qkv.size(0), T = qkv.size(1), all = qkv.size(2), E = qkv.size(3),
                     normed = heads + kv_heads;
  Forward out{at::empty_like(qkv),
              at::empty({B, T, normed}, qkv.options().dtype(impl::cpu::math_type(qkv.scalar_type())))};
  impl::cpu::with_element(qkv.scalar_type(), "qk_norm", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* in = qkv.const_data_ptr<scalar_t>();
    auto* to = out.qkv.data_ptr<scalar_t>();
    const M *gq = q_gain.const_data_ptr<M>(), *gk = k_gain.const_data_ptr<M>();
    auto* rstds = out.rstd.data_ptr<M>();
    impl::cpu::for_rows(B * T, all * E, [&](std::int64_t n) {
      for (std::int64_t h = 0; h < normed; ++h) {
        const scalar_t* x = in + (n * all + h) * E;
        const M* g = h < heads ? gq : gk;
        scalar_t* y = to + (n * all + h) * E;
        M squares = 0;
#pragma omp simd reduction(+ : squares)
        for (std::int64_t e = 0; e < E; ++e) squares += M(x[e]) * M(x[e]);
        const M rstd = M(1) / std::sqrt(squares / static_cast<M>(E) + static_cast<M>(eps));
#pragma omp simd
        for (std::int64_t e = 0; e < E; ++e) y[e] = scalar_t(M(x[e]) * rstd * g[e]);
        rstds[n * normed + h] = rstd;
      }
      std::copy_n(in + (n * all + normed) * E, kv_heads * E, to + (n * all + normed) * E);
    });
  });
  return out;
}

void backward(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
              const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
              at::Tensor dk_gain) {
  const std::int64_t N = qkv.size(0) * qkv.size(1), all = qkv.size(2), E = qkv.size(3),
                     normed = heads + kv_heads;
  impl::cpu::with_element(qkv.scalar_type(), "qk_norm_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* in = qkv.const_data_ptr<scalar_t>();
    auto* gradient = dqkv.data_ptr<scalar_t>();
    const M *gq = q_gain.const_data_ptr<M>(), *gk = k_gain.const_data_ptr<M>();
    const auto* rstds = rstd.const_data_ptr<M>();
    std::vector<M> dgains(static_cast<std::size_t>(2 * E), M(0));  // of q, then of k
    impl::cpu::sum_over_rows<M>(N, 2 * E, dgains.data(), [&](std::int64_t n, M* sums) {
      for (std::int64_t h = 0; h < normed; ++h) {
        const scalar_t* x = in + (n * all + h) * E;
        const M* g = h < heads ? gq : gk;
        scalar_t* dy = gradient + (n * all + h) * E;
        M* dgain = sums + (h < heads ? 0 : E);
        const M r = rstds[n * normed + h];
        M projection = 0;  // mean over e of dy * g * xhat
#pragma omp simd reduction(+ : projection)
        for (std::int64_t e = 0; e < E; ++e) {
          const M product = M(dy[e]) * (M(x[e]) * r);
          dgain[e] += product;
          projection += product * g[e];
        }
        projection /= static_cast<M>(E);
#pragma omp simd
        for (std::int64_t e = 0; e < E; ++e)
          dy[e] = scalar_t(r * (M(dy[e]) * g[e] - M(x[e]) * r * projection));
      }
    });
    auto *dq = dq_gain.data_ptr<M>(), *dk = dk_gain.data_ptr<M>();
    for (std::int64_t e = 0; e < E; ++e) {
      dq[e] += dgains[static_cast<std::size_t>(e)];
      dk[e] += dgains[static_cast<std::size_t>(E + e)];
    }
  });
}

}  // namespace assay::impl::qk_norm::cpu
