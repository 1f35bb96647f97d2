#pragma once
// Matrices cut and joined: a linear may compute several at once.
#include <functional>
#include <numeric>
#include <vector>

#include "reference/tensor.hpp"

namespace assay::reference {

/// Matrices below each other: the weight of a linear that computes several.
template <class S>
Tensor<S> stacked(const std::vector<Tensor<S>>& matrices) {
  Index rows = 0;
  for (const Tensor<S>& matrix : matrices) rows += matrix.extent(0);
  Tensor<S> out({rows, matrices.front().extent(1)});
  Index filled = 0;
  for (const Tensor<S>& matrix : matrices) {
    out.flat().segment(filled, matrix.size()) = matrix.flat();
    filled += matrix.size();
  }
  return out;
}

/// Rows [begin, begin + count) of a matrix.
template <class S>
Tensor<S> rows(const Tensor<S>& matrix, Index begin, Index count) {
  Tensor<S> out({count, matrix.extent(1)});
  out.flat() = matrix.flat().segment(begin * matrix.extent(1), out.size());
  return out;
}

/// Tensors beside each other: of each, `leading` axes stay and the others are one, [.., sum of their
/// entries].
template <class S>
Tensor<S> beside(const std::vector<Tensor<S>>& tensors, std::size_t leading) {
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, Index{1}, std::multiplies<>());
  };
  const auto behind = static_cast<std::ptrdiff_t>(leading);
  const auto entries = [&](const Tensor<S>& tensor) {
    return product(tensor.shape().begin() + behind, tensor.shape().end());
  };
  Shape shape(tensors.front().shape().begin(), tensors.front().shape().begin() + behind);
  const Index rows = product(shape.begin(), shape.end());
  Index width = 0;
  for (const Tensor<S>& tensor : tensors) width += entries(tensor);
  shape.push_back(width);
  Tensor<S> out(shape);
  Index filled = 0;
  for (const Tensor<S>& tensor : tensors) {
    const Index own = entries(tensor);
    for (Index n = 0; n < rows; ++n)
      out.flat().segment(n * width + filled, own) = tensor.flat().segment(n * own, own);
    filled += own;
  }
  return out;
}

/// Entries [begin, begin + count) of the last axis of x.
template <class S>
Tensor<S> columns(const Tensor<S>& x, Index begin, Index count) {
  Shape shape = x.shape();
  const Index width = shape.back();
  shape.back() = count;
  Tensor<S> out(shape);
  for (Index n = 0; n < x.size() / width; ++n)
    out.flat().segment(n * count, count) = x.flat().segment(n * width + begin, count);
  return out;
}

}  // namespace assay::reference
