#include "reference/ops/rms_norm.hpp"

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"

namespace assay::reference::rms_norm {

template <class S>
Forward<S> forward(const Tensor<S>& x, const Tensor<S>& gain, double eps) {
  using std::sqrt;
  const Index D = x.extent(-1), N = D ? x.size() / D : 0;
  spec::rms_norm::check({.N = N, .D = D}, gain.size(), eps);

  Forward<S> out{Tensor<S>(x.shape()), Tensor<S>({N})};
  for (Index n = 0; n < N; ++n) {
    S sum_of_squares = 0;
    for (Index d = 0; d < D; ++d) sum_of_squares += x[n * D + d] * x[n * D + d];
    const S rstd = S(1) / sqrt(sum_of_squares / S(static_cast<double>(D)) + S(eps));
    for (Index d = 0; d < D; ++d) out.y[n * D + d] = x[n * D + d] * rstd * gain[d];
    out.rstd[n] = rstd;
  }
  return out;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& gain, const Tensor<S>& rstd) {
  const Index D = x.extent(-1), N = rstd.size();

  Backward<S> out{Tensor<S>(x.shape()), Tensor<S>({D})};
  for (Index n = 0; n < N; ++n) {
    S projection = 0;  // mean over d of dy * g * xhat
    for (Index d = 0; d < D; ++d) {
      const S xhat = x[n * D + d] * rstd[n];
      out.dgain[d] += dy[n * D + d] * xhat;
      projection += dy[n * D + d] * gain[d] * xhat;
    }
    projection /= S(static_cast<double>(D));
    for (Index d = 0; d < D; ++d) {
      const S xhat = x[n * D + d] * rstd[n];
      out.dx[n * D + d] = rstd[n] * (dy[n * D + d] * gain[d] - xhat * projection);
    }
  }
  return out;
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, double);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, double);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Tensor<double>&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Tensor<Counted>&);

}  // namespace assay::reference::rms_norm
