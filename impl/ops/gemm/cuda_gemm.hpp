#pragma once
// Matrix products of contiguous row-major tensors by cuBLASLt: inputs of one dtype, result in that dtype or,
// for bf16 inputs, in fp32; added to what a third matrix holds, in the product's own write-back.
#include <ATen/core/Tensor.h>

#include <string>

namespace assay::impl::cuda {

/// left right, each as it is or transposed.
struct Product {
  const at::Tensor& left;   ///< [M, K], or [K, M] when left_transposed
  const at::Tensor& right;  ///< [K, N], or [N, K] when right_transposed
  bool left_transposed = false, right_transposed = false;
  at::Tensor bias = {};  ///< [N] in the result's dtype, added to each row; undefined: none
};

/// out [M, N] = product, + beta added where it is defined (`added` of out's shape and dtype, may be out
/// itself). With beta = 0 nothing of `added` is read, and the sum is that of an `added` of zeros, bit for
/// bit. Sums in fp32 for bf16 and fp32 (no TF32), in fp64 for fp64. Results are bitwise repeatable on one GPU
/// and library version while the algorithm is the same: of a small product it is the library's first choice;
/// of a large one candidates take turns until the fastest is known and kept on disk (cuda_gemm_search.hpp),
/// unless `deterministic()`: then nothing is timed, and it is the pinned one (gemm_pins.hpp). Returns false,
/// nothing written, where the library has no algorithm for the shape or the bias does not begin at a multiple
/// of 16 bytes. Errors: c10::Error.
bool multiply(const Product& product, at::Tensor out, const at::Tensor& added, double beta = 1);

/// Finds the product's algorithm that does most where it alone keeps the GPU busy, `seconds` twice for each
/// candidate: under a power limit, the one that takes the least energy. It is used from then on, and kept on
/// disk for later processes. `out` is overwritten, or added to many times. Returns a line about the times.
/// Errors: c10::Error where no algorithm runs.
std::string tune(const Product& product, at::Tensor out, const at::Tensor& added, double seconds);

}  // namespace assay::impl::cuda
