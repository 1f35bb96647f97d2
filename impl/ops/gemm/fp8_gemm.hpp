#pragma once
// GEMMs of two FP8 matrices, both with the summed axis last (the only layout of Hopper's FP8 tensor cores).
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>

#include "impl/ops/quantise/quantise.hpp"

namespace assay::impl::fp8 {

using quantise::Quantised;
using spec::quantise::Recipe;

/// out [M, N] = a b^T, + beta added where that is defined (out's shape and dtype, may be out itself), or
/// + bias [N] in out's dtype. a [M, K], b [N, K] in FP8. On a GPU cuBLASLt computes results in bf16 and fp32;
/// `fast_accumulation`: impl/ops/gemm/cuda_gemm.hpp. On a CPU, and of an fp64 result
/// on a GPU: exact products of the FP8 values, summed in out's dtype, for bf16 in fp32 with one rounding.
/// Errors: UserError(usage) where the GPU or the library has no such GEMM, naming the nearest recipe.
void gemm(const Quantised& a, const Quantised& b, at::Tensor out, const at::Tensor& added = {},
          double beta = 1, const at::Tensor& bias = {}, bool fast_accumulation = false);

/// The recipe that has operands of these scalings; `none` where no recipe has.
Recipe recipe_of(const Quantised& a, const Quantised& b);

/// Why the device does not compute the GEMMs of a recipe, and the nearest recipe whose GEMMs it does; empty
/// where it does. The library is asked for an algorithm of each of a linear's three GEMMs. CPUs compute all.
std::string refusal(Recipe recipe, const at::Device& device);

/// What a refusal says of a GPU.
struct Machine {
  std::string gpu;
  int major = 0, minor = 0;  ///< compute capability
  std::size_t cublaslt = 0;  ///< version, 130100 for 13.1.0
};
std::string refusal(Recipe recipe, const Machine& machine, const std::function<bool(Recipe)>& computes);

}  // namespace assay::impl::fp8
