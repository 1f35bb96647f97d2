#pragma once
// Matrices cut and joined: a linear may compute several at once.
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

/// Tensors [B, T, ...] beside each other along the last axis: [B, T, sum of the entries of a token].
template <class S>
Tensor<S> beside(const std::vector<Tensor<S>>& tensors, Index B, Index T) {
  Index width = 0;
  for (const Tensor<S>& tensor : tensors) width += tensor.size() / (B * T);
  Tensor<S> out({B, T, width});
  Index filled = 0;
  for (const Tensor<S>& tensor : tensors) {
    const Index entries = tensor.size() / (B * T);
    for (Index n = 0; n < B * T; ++n)
      out.flat().segment(n * width + filled, entries) = tensor.flat().segment(n * entries, entries);
    filled += entries;
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
