#pragma once
// GEMMs of two FP8 matrices, both with the summed axis last (the only layout of Hopper's FP8 tensor cores).
#include <ATen/core/Tensor.h>

#include "impl/ops/quantise/quantise.hpp"

namespace assay::impl::fp8 {

/// out [M, N] = a b^T, + beta added where that is defined (out's shape and dtype, may be out itself), + bias
/// [N] in out's dtype. a [M, K], b [N, K] in FP8; out bf16 or fp32 on a GPU, summed in fp32. On a CPU, any
/// dtype: exact products of the FP8 values, summed as linear::forward sums that dtype. `fast_accumulation`:
/// Hopper's tensor cores keep about 14 bits of a running sum; without it partial sums go to fp32 registers
/// every 128 products. Errors: UserError(usage) where the GPU or the library has no such GEMM, naming the
/// recipe and the nearest one.
void gemm(const quantise::Quantised& a, const quantise::Quantised& b, at::Tensor out,
          const at::Tensor& added = {}, double beta = 1, const at::Tensor& bias = {},
          bool fast_accumulation = false);

/// Whether the device of `index` and the library compute GEMMs of this recipe; else why not.
/// CPUs compute all of them.
std::string refusal(spec::quantise::Recipe recipe, const at::Device& device);

}  // namespace assay::impl::fp8
