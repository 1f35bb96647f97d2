#include "reference/ops/grouped_linear.hpp"

#include "reference/counted.hpp"
#include "spec/ops/grouped_linear/grouped_linear.hpp"

namespace assay::reference::grouped_linear {

namespace {
template <class S>
spec::grouped_linear::Shape checked(const Tensor<S>& x, const Tensor<S>& weights, const Ids& offsets) {
  const spec::grouped_linear::Shape shape{
      .R = x.extent(0), .in = x.extent(1), .out = weights.extent(1), .X = weights.extent(0)};
  spec::grouped_linear::check(shape, weights.extent(2), offsets);
  return shape;
}

/// Calls body(e, r) for every row r of every expert e.
template <class Body>
void for_each_row(const Ids& offsets, const Body& body) {
  for (std::size_t e = 0; e + 1 < offsets.size(); ++e)
    for (Index r = offsets[e]; r < offsets[e + 1]; ++r) body(static_cast<Index>(e), r);
}
}  // namespace

using quantise::Along;
using quantise::read_by_gemm;
using quantise::Role;

template <class S>
Tensor<S> forward(const Tensor<S>& x_exact, const Tensor<S>& weights_exact, const Ids& offsets,
                  Recipe recipe) {
  const auto shape = checked(x_exact, weights_exact, offsets);
  const Tensor<S> x = read_by_gemm(x_exact, recipe, Role::activation, Along::last),
                  weights = read_by_gemm(weights_exact, recipe, Role::weight, Along::last);
  Tensor<S> y({shape.R, shape.out});
  for_each_row(offsets, [&](Index e, Index r) {
    for (Index o = 0; o < shape.out; ++o)
      for (Index i = 0; i < shape.in; ++i) y(r, o) += x(r, i) * weights(e, o, i);
  });
  return y;
}

template <class S>
Backward<S> backward(const Tensor<S>& dy, const Tensor<S>& x, const Tensor<S>& weights, const Ids& offsets,
                     Recipe recipe) {
  const auto shape = checked(x, weights, offsets);
  spec::grouped_linear::check_upstream(shape, dy.size());
  const Tensor<S> dy_o = read_by_gemm(dy, recipe, Role::gradient, Along::last),
                  weights_o = read_by_gemm(weights, recipe, Role::weight, Along::last);
  Backward<S> gradient{Tensor<S>(x.shape()), Tensor<S>(weights.shape())};
  for_each_row(offsets, [&](Index e, Index r) {
    for (Index o = 0; o < shape.out; ++o)
      for (Index i = 0; i < shape.in; ++i) {
        gradient.dx(r, i) += dy_o(r, o) * weights_o(e, o, i);
        gradient.dweights(e, o, i) += dy(r, o) * x(r, i);
      }
  });
  return gradient;
}

template Tensor<double> forward(const Tensor<double>&, const Tensor<double>&, const Ids&, Recipe);
template Tensor<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Ids&, Recipe);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Ids&, Recipe);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Ids&, Recipe);

}  // namespace assay::reference::grouped_linear
