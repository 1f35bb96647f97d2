#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"

namespace assay::impl::rms_norm::cpu {

using impl::cpu::load;
using impl::cpu::Math;
using impl::cpu::store;

namespace {
/// `sum`: the storage of x, which the residual is added to, or undefined where there is none.
Forward normed(const at::Tensor& x, at::Tensor sum, const at::Tensor& residual, const at::Tensor& gain,
               double eps) {
  const std::int64_t D = x.size(-1), N = x.numel() / D;
  Forward out{at::empty_like(x), at::empty({N}, x.options().dtype(impl::cpu::math_type(x.scalar_type())))};
  impl::cpu::with_element(x.scalar_type(), "rms_norm", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    const auto* xs = x.const_data_ptr<scalar_t>();
    const auto* g = gain.const_data_ptr<M>();
    auto* ys = out.y.data_ptr<scalar_t>();
    auto* rstds = out.rstd.data_ptr<M>();
    auto* sums = sum.defined() ? sum.data_ptr<scalar_t>() : nullptr;
    const auto* residuals = sum.defined() ? residual.const_data_ptr<scalar_t>() : nullptr;
    impl::cpu::for_rows(N, D, [&](std::int64_t n) {
      const scalar_t* row = xs + n * D;
      scalar_t* y = ys + n * D;
      for (std::int64_t d = n * D; sums && d < (n + 1) * D; ++d)
        sums[d] = scalar_t(M(sums[d]) + M(residuals[d]));
      M squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t d = 0; d < D; ++d) squares += M(row[d]) * M(row[d]);
      const M rstd = M(1) / std::sqrt(squares / static_cast<M>(D) + static_cast<M>(eps));
#pragma omp simd
      for (std::int64_t d = 0; d < D; ++d) y[d] = scalar_t(M(row[d]) * rstd * g[d]);
      rstds[n] = rstd;
    });
  });
  return out;
}
}  // namespace

Forward forward(const at::Tensor& x, const at::Tensor& gain, double eps) {
  return normed(x, {}, {}, gain, eps);
}

Forward forward_of_sum(at::Tensor x, const at::Tensor& residual, const at::Tensor& gain, double eps) {
  return normed(x, x, residual, gain, eps);
}

void backward(at::Tensor dy, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
              const at::Tensor& residual, at::Tensor dx, at::Tensor dgain, ForwardValue value) {
  const std::int64_t D = x.size(-1), N = rstd.numel();
  const bool again = value == ForwardValue::again;
  impl::cpu::with_element(x.scalar_type(), "rms_norm_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    const auto* xs = x.const_data_ptr<scalar_t>();
    auto* dys = dy.data_ptr<scalar_t>();
    const auto* g = gain.const_data_ptr<M>();
    const auto* rstds = rstd.const_data_ptr<M>();
    const auto* residuals = residual.const_data_ptr<scalar_t>();
    auto* dxs = dx.data_ptr<scalar_t>();
    impl::cpu::sum_over_rows<M>(N, D, dgain.data_ptr<M>(), [&](std::int64_t n, M* sums) {
      const scalar_t *row = xs + n * D, *added = residuals + n * D;
      scalar_t *upstream = dys + n * D, *out = dxs + n * D;
      const M r = rstds[n];
      auto projections = impl::cpu::Lanes<M>::all(0);  // their sum / D: mean over d of dy * g * xhat
      for (std::int64_t d = 0; d < D; d += lanes) {
        const auto product = load(upstream + d, D - d) * (load(row + d, D - d) * r);
        store(sums + d, load(sums + d, D - d) + product, D - d);
        projections += product * load(g + d, D - d);
      }
      const M projection = impl::cpu::sum_of<M>(projections) / static_cast<M>(D);
      for (std::int64_t d = 0; d < D; d += lanes) {
        const auto xhat = load(row + d, D - d) * r, gains = load(g + d, D - d);
        const auto gradient = (load(upstream + d, D - d) * gains - xhat * projection) * r;
        store(out + d, load(added + d, D - d) + gradient, D - d);
        if (again) store(upstream + d, xhat * gains, D - d);  // y as in forward, to the bit
      }
    });
  });
}

}  // namespace assay::impl::rms_norm::cpu
