#include "reference/ops/linear.hpp"

#include "reference/counted.hpp"
#include "spec/ops/linear.hpp"

namespace assay::reference::linear {

namespace {
template <class S>
spec::linear::Shape checked_shape(const Tensor<S>& x, const Tensor<S>& weight) {
  const Index in = x.extent(-1);
  const spec::linear::Shape shape{.N = in ? x.size() / in : 0, .in = in, .out = weight.extent(0)};
  spec::linear::check(shape, weight.extent(1));
  return shape;
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x, const Tensor<S>& weight) {
  const auto [N, in, out] = checked_shape(x, weight);

  Shape y_shape = x.shape();
  y_shape.back() = out;
  Tensor<S> y(y_shape);
  for (Index n = 0; n < N; ++n) {
    for (Index o = 0; o < out; ++o) {
      S sum = 0;
      for (Index i = 0; i < in; ++i) sum += x[n * in + i] * weight[o * in + i];
      y[n * out + o] = sum;
    }
  }
  return y;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& weight) {
  const auto shape = checked_shape(x, weight);
  spec::linear::check_upstream(shape, dy.size());
  const auto [N, in, out] = shape;

  Backward<S> gradient{Tensor<S>(x.shape()), Tensor<S>(weight.shape())};
  for (Index n = 0; n < N; ++n) {
    for (Index o = 0; o < out; ++o) {
      const S upstream = dy[n * out + o];
      for (Index i = 0; i < in; ++i) {
        gradient.dx[n * in + i] += upstream * weight[o * in + i];
        gradient.dweight[o * in + i] += upstream * x[n * in + i];
      }
    }
  }
  return gradient;
}

template Tensor<double> forward(const Tensor<double>&, const Tensor<double>&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&);

}  // namespace assay::reference::linear
