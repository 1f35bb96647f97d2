#pragma once
// Random inputs of numeric tests. Values come from the project's counter-based generator, so that a printed
// seed gives the same tensor on every machine (std:: distributions do not).
#include "reference/counted.hpp"
#include "reference/tensor.hpp"
#include "spec/count.hpp"
#include "spec/random/philox.hpp"

namespace assay::tests {

/// N(0, scale^2) entries: both signs, no exact zeros, magnitudes over about three decades.
inline reference::Tensor<double> normal(reference::Shape shape, std::uint64_t seed, double scale = 1) {
  reference::Tensor<double> tensor(std::move(shape));
  const spec::random::Stream stream(seed, spec::random::Site::test, 0);
  for (reference::Index i = 0; i < tensor.size(); ++i)
    tensor[i] = scale * stream.normal(static_cast<std::uint64_t>(i));
  return tensor;
}

/// The same values as numbers that count their arithmetic.
inline reference::Tensor<reference::Counted> counted(const reference::Tensor<double>& tensor) {
  reference::Tensor<reference::Counted> out(tensor.shape());
  for (reference::Index i = 0; i < tensor.size(); ++i) out[i] = tensor[i];
  return out;
}

/// Arithmetic operations that `call` executes on Counted numbers.
template <class Call>
Count operations_of(Call&& call) {
  reference::Counted::operations() = 0;
  call();
  return Count(reference::Counted::operations());
}

}  // namespace assay::tests
