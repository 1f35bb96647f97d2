#include "reference/ops/rope.hpp"

#include <cmath>

#include "reference/counted.hpp"

namespace assay::reference::rope {

namespace {
/// `direction` is +1 or -1, the sign of every angle.
template <class S>
Tensor<S> rotate(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies,
                 const spec::rope::Form& form, double direction) {
  const Index B = x.extent(0), T = x.extent(1), H = x.extent(2), E = x.extent(3), half = E / 2;
  const bool halves = form.pairs == spec::rope::Pairs::halves;
  spec::rope::check({.B = B, .T = T, .H = H, .E = E}, positions,
                    static_cast<Index>(inverse_frequencies.size()));

  Tensor<S> y(x.shape());
  for (Index row = 0; row < B * T; ++row) {
    for (Index e = 0; e < half; ++e) {
      const double position = static_cast<double>(positions[static_cast<std::size_t>(row)]);
      const double angle = position * inverse_frequencies[static_cast<std::size_t>(e)];
      const S cosine = form.factor * std::cos(angle), sine = direction * form.factor * std::sin(angle);
      for (Index h = 0; h < H; ++h) {
        const Index head = (row * H + h) * E;
        const Index first = head + (halves ? e : 2 * e), second = first + (halves ? half : 1);
        y[first] = x[first] * cosine - x[second] * sine;
        y[second] = x[second] * cosine + x[first] * sine;
      }
    }
  }
  return y;
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies,
                  const spec::rope::Form& form) {
  return rotate(x, positions, inverse_frequencies, form, 1);
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& positions, const std::vector<double>& inverse_frequencies,
                   const spec::rope::Form& form) {
  return rotate(dy, positions, inverse_frequencies, form, -1);
}

template Tensor<double> forward(const Tensor<double>&, const Ids&, const std::vector<double>&,
                                const spec::rope::Form&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Ids&, const std::vector<double>&,
                                 const spec::rope::Form&);
template Tensor<double> backward(const Tensor<double>&, const Ids&, const std::vector<double>&,
                                 const spec::rope::Form&);
template Tensor<Counted> backward(const Tensor<Counted>&, const Ids&, const std::vector<double>&,
                                  const spec::rope::Form&);

}  // namespace assay::reference::rope
