#pragma once
#include <cstdint>
#include <vector>

#include "reference/tensor.hpp"
#include "spec/ops/quantise/quantise.hpp"

namespace assay::reference::quantise {

using spec::quantise::Format;
using spec::quantise::Recipe;
using spec::quantise::Role;
using spec::quantise::Scaling;

/// A matrix in FP8.
struct Quantised {
  std::vector<std::uint8_t> codes;  ///< [R, C]
  Tensor<double> scales;            ///< [blocks of rows, blocks of columns]
  Tensor<double> values;            ///< [R, C] value of the code times the scale of its block
};

/// Every block of entries in FP8, with a power of two that they share. [spec/ops/quantise/quantise.md]
/// Equation:  code = cast(x / s), s = 2^e, e the least with amax <= largest 2^e
/// Source:    Micikevicius et al., "FP8 Formats for Deep Learning", 2022
/// Shapes:    x [R, C]
/// Numerics:  exact: the code is found among all 256, e by counting up
Quantised quantise(const Tensor<double>& x, Format format, Scaling scaling);

/// The axis that a GEMM sums over, of x as a matrix [product of the leading axes, last axis].
enum class Along { last, leading };

/// The values of x that a GEMM of `recipe` reads which sums along `along`, in the shape of x; x itself for
/// Recipe::none.
template <class S>
Tensor<S> read_by_gemm(const Tensor<S>& x, Recipe recipe, Role role, Along along, Index parts = 1);

}  // namespace assay::reference::quantise
