#include "reference/ops/rope.hpp"

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/rope.hpp"

namespace assay::reference::rope {

namespace {
/// `direction` is +1 or -1, the sign of every angle.
template <class S>
Tensor<S> rotate(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies,
                 double direction) {
  const Index B = x.extent(0), T = x.extent(1), H = x.extent(2), E = x.extent(3), half = E / 2;
  spec::rope::check({.B = B, .T = T, .H = H, .E = E}, positions,
                    static_cast<Index>(inverse_frequencies.size()));

  Tensor<S> y(x.shape());
  for (Index row = 0; row < B * T; ++row) {
    for (Index e = 0; e < half; ++e) {
      const double position = static_cast<double>(positions[static_cast<std::size_t>(row)]);
      const double angle = position * inverse_frequencies[static_cast<std::size_t>(e)];
      const S cosine = std::cos(angle), sine = direction * std::sin(angle);
      for (Index h = 0; h < H; ++h) {
        const Index first = (row * H + h) * E + e, second = first + half;
        y[first] = x[first] * cosine - x[second] * sine;
        y[second] = x[second] * cosine + x[first] * sine;
      }
    }
  }
  return y;
}
}  // namespace

template <class S>
Tensor<S> forward(const Tensor<S>& x, const Ids& positions, const std::vector<double>& inverse_frequencies) {
  return rotate(x, positions, inverse_frequencies, 1);
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& positions,
                   const std::vector<double>& inverse_frequencies) {
  return rotate(dy, positions, inverse_frequencies, -1);
}

template Tensor<double> forward(const Tensor<double>&, const Ids&, const std::vector<double>&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Ids&, const std::vector<double>&);
template Tensor<double> backward(const Tensor<double>&, const Ids&, const std::vector<double>&);
template Tensor<Counted> backward(const Tensor<Counted>&, const Ids&, const std::vector<double>&);

}  // namespace assay::reference::rope
