#pragma once
// Central differences of a scalar function, the judge of every hand-written backward pass.
#include <cmath>
#include <functional>

#include "reference/tensor.hpp"
#include "tests/support/compare.hpp"

namespace assay::tests {

/// The values of a reference tensor.
inline Values values(const reference::Tensor<double>& tensor) {
  return {tensor.shape(), std::vector<double>(tensor.flat().begin(), tensor.flat().end())};
}

/// The reference tensor of values, e.g. of a golden file.
inline reference::Tensor<double> tensor(const Values& values) { return {values.shape, values.data}; }

/// Gradient of `f` at `x` by fourth-order central differences: (8(f1 - f-1) - (f2 - f-2)) / 12h with f_k =
/// f(x + k h). Truncation is h^4 |f'''''| / 30 and rounding u |f| / h, balanced near h = 1e-3 for functions
/// of order one: about 1e-12 each, so a bound of 1e-7 of the largest entry leaves room for neither a wrong
/// sign nor a lost term.
inline Values central_difference(const std::function<double(const reference::Tensor<double>&)>& f,
                                 const reference::Tensor<double>& x, double h = 1e-3) {
  reference::Tensor<double> gradient(x.shape()), moved = x;
  for (reference::Index i = 0; i < x.size(); ++i) {
    const auto at = [&](double steps) {
      moved[i] = x[i] + steps * h;
      const double value = f(moved);
      moved[i] = x[i];
      return value;
    };
    gradient[i] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
  }
  return values(gradient);
}

/// sum_i weight_i * y_i: turns a tensor-valued op into the scalar whose gradient is the op's backward of dy =
/// weight.
inline double dot(const reference::Tensor<double>& weight, const reference::Tensor<double>& y) {
  return (weight.flat() * y.flat()).sum();
}

}  // namespace assay::tests
