#pragma once
// Matrix products of contiguous row-major tensors by cuBLASLt: inputs of one dtype, result in that dtype or,
// for bf16 inputs, in fp32; added to what a third matrix holds, in the product's own write-back.
#include <ATen/core/Tensor.h>

namespace assay::impl::cuda {

/// left right, each as it is or transposed.
struct Product {
  const at::Tensor& left;   ///< [M, K], or [K, M] when left_transposed
  const at::Tensor& right;  ///< [K, N], or [N, K] when right_transposed
  bool left_transposed = false, right_transposed = false;
};

/// out [M, N] = product, + added where it is defined (`added` of out's shape and dtype, may be out itself).
/// Sums in fp32 for bf16 and fp32 (no TF32), in fp64 for fp64. The algorithm of a shape is the library's
/// first choice, the same in every run: results are bitwise repeatable on one GPU and library version.
/// Returns false, nothing written, where the library has no algorithm for the shape. Errors: c10::Error.
bool multiply(const Product& product, at::Tensor out, const at::Tensor& added);

}  // namespace assay::impl::cuda
