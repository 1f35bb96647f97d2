#include "reference/ops/linear.hpp"

#include "reference/counted.hpp"
#include "reference/ops/quantise.hpp"
#include "spec/ops/linear/linear.hpp"

namespace assay::reference::linear {

namespace {

using quantise::Along;
using quantise::read_by_gemm;
using quantise::Role;

template <class S>
spec::linear::Shape checked_shape(const Tensor<S>& x, const Tensor<S>& weight) {
  const Index in = x.extent(-1);
  const spec::linear::Shape shape{.N = in ? x.size() / in : 0, .in = in, .out = weight.extent(0)};
  spec::linear::check(shape, weight.extent(1));
  return shape;
}

}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x_exact, const Tensor<S>& weight_exact, const Precision& precision) {
  const auto [N, in, out] = checked_shape(x_exact, weight_exact);
  const Tensor<S> x = read_by_gemm(x_exact, precision.recipe, Role::activation, Along::last, precision.parts);
  const Tensor<S> weight = read_by_gemm(weight_exact, precision.recipe, Role::weight, Along::last);

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
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& weight,
                     const Precision& precision) {
  const auto shape = checked_shape(x, weight);
  spec::linear::check_upstream(shape, dy.size());
  const auto [N, in, out] = shape;
  // dx sums over the outputs, dweight over the rows.
  const Tensor<S> dy_o = read_by_gemm(dy, precision.recipe, Role::gradient, Along::last, precision.parts);
  const Tensor<S> weight_o = read_by_gemm(weight, precision.recipe, Role::weight, Along::leading);
  const Tensor<S> dy_n = read_by_gemm(dy, precision.recipe, Role::gradient, Along::leading, precision.parts);
  const Tensor<S> x_n = read_by_gemm(x, precision.recipe, Role::activation, Along::leading, precision.parts);

  Backward<S> gradient{Tensor<S>(x.shape()), Tensor<S>(weight.shape())};
  for (Index n = 0; n < N; ++n) {
    for (Index o = 0; o < out; ++o) {
      for (Index i = 0; i < in; ++i) {
        gradient.dx[n * in + i] += dy_o[n * out + o] * weight_o[o * in + i];
        gradient.dweight[o * in + i] += dy_n[n * out + o] * x_n[n * in + i];
      }
    }
  }
  return gradient;
}

template Tensor<double> forward(const Tensor<double>&, const Tensor<double>&, const Precision&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Precision&);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Precision&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Precision&);

}  // namespace assay::reference::linear
