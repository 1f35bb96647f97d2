#include "reference/ops/bias.hpp"

#include "reference/counted.hpp"
#include "spec/ops/bias/bias.hpp"

namespace assay::reference::bias {

namespace {
template <class S>
spec::bias::Shape shape_of(const Tensor<S>& rows) {
  const Index out = rows.extent(-1);
  return {.N = out ? rows.size() / out : 0, .out = out};
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x, const Tensor<S>& bias) {
  spec::bias::check(shape_of(x), bias.size());
  const auto [N, out] = shape_of(x);

  Tensor<S> y(x.shape());
  for (Index n = 0; n < N; ++n)
    for (Index o = 0; o < out; ++o) y[n * out + o] = x[n * out + o] + bias[o];
  return y;
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy) {
  const auto [N, out] = shape_of(dy);
  spec::bias::check(shape_of(dy), out);

  Tensor<S> dbias({out});
  for (Index n = 0; n < N; ++n)
    for (Index o = 0; o < out; ++o) dbias[o] += dy[n * out + o];
  return dbias;
}

template Tensor<double> forward(const Tensor<double>&, const Tensor<double>&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&);
template Tensor<double> backward(const Tensor<double>&);
template Tensor<Counted> backward(const Tensor<Counted>&);

}  // namespace assay::reference::bias
