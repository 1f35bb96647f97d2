#pragma once
// GEMMs of contiguous row-major tensors by cuBLASLt: bf16, fp32 or fp64 matrices, result in that dtype or,
// for bf16, in fp32; two FP8 matrices with their scales, result in bf16 or fp32. The result may be added to a
// third matrix in the GEMM's own write-back.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "spec/ops/quantise/quantise.hpp"

namespace assay::impl::cuda {

/// A matrix that a GEMM reads, as it lies in memory or transposed.
struct Operand {
  const at::Tensor& matrix;
  bool transposed = false;
  at::Tensor scales = {};  ///< of FP8 codes, laid out as quantise::Quantised says; undefined: none
  spec::quantise::Scaling scaling = spec::quantise::Scaling::tensor;
};

struct Gemm {
  Operand left;          ///< [M, K], or [K, M] when transposed
  Operand right;         ///< [K, N], or [N, K] when transposed
  at::Tensor bias = {};  ///< [N] in the result's dtype, added to each row; undefined: none
  /// FP8 on Hopper: the tensor cores' running sum of about 14 bits serves for all of K. Without it partial
  /// sums go to fp32 registers every 128 products.
  bool fast_accumulation = false;
};

/// out [M, N] = left right, + beta added where it is defined (`added` of out's shape and dtype, may be out
/// itself). With beta = 0 nothing of `added` is read, and the sum is that of an `added` of zeros, bit for
/// bit. Sums in fp32 for bf16 and fp32 (no TF32), in fp64 for fp64. Results are bitwise repeatable on one GPU
/// and library version while the algorithm is the same: of a small GEMM it is the library's first choice;
/// of a large one candidates take turns until the fastest is known and kept on disk (cuda_gemm_search.hpp),
/// unless `deterministic()`: then it is the pinned one (gemm_pins.hpp) or, where none is, that of the
/// candidates whose bits are the first choice's. Returns false,
/// nothing written, where the library has no algorithm for the types, scales and shape, or the bias does not
/// begin at a multiple of 16 bytes. Errors: c10::Error.
bool multiply(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double beta = 1);

/// Whether the library has an algorithm for it. Nothing is computed.
bool has_algorithm(const Gemm& gemm, const at::Tensor& out, const at::Tensor& added);

/// Milliseconds of a call and the candidate's number, 0 being the library's first choice; fastest first.
using CandidateTimes = std::vector<std::pair<double, std::size_t>>;

/// Times of the library's first choice and of the fastest other candidates, `most` in all, where each alone
/// keeps the GPU busy, for `seconds` twice. `out` is overwritten, or added to many times. Errors: c10::Error
/// where no algorithm runs.
CandidateTimes time_candidates(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double seconds,
                               std::size_t most);

/// Finds the GEMM's algorithm that does most where it alone keeps the GPU busy (time_candidates): under a
/// power limit, the one that takes the least energy. It is used from then on, and kept on disk for later
/// processes. Returns a line about the times.
std::string tune(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double seconds);

}  // namespace assay::impl::cuda
