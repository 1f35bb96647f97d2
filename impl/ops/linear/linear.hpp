#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/quantise/quantise.hpp"

namespace assay::impl::linear {

/// y = x W^T, + bias where there is one, added in the GEMM's write-back. [spec/ops/linear/linear.md] Shapes:
/// x [N, in], weight [out, in], bias [out] or undefined -> y [N, out]; one dtype. Errors: SpecError linear_c1
/// (inner extents differ), bias_c1 (bias of another size). Same meaning of N, in, out in every function here.
at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// x W^T without the last rounding: in the type of sums, fp32 for bf16, else that of x.
at::Tensor forward_wide(const at::Tensor& x, const at::Tensor& weight);

/// residual + x W^T, the sum done inside the GEMM (beta = 1) where that saves a pass. residual [N, out].
at::Tensor forward_residual(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight);

/// dx = dy W. dy [N, out] -> dx [N, in].
at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight);

/// The gradient of a weight is a sum over micro-batches and chunks. The GEMM that starts it reads nothing
/// of what lies in its place; one that continues it adds.
enum class GradientSum { continues, starts };

/// dweight += dy^T x, or = where the sum starts, accumulated in dweight's dtype (fp32 for bf16 activations,
/// else that of x). dy [N, out], x [N, in], dweight [out, in].
void backward_weight(const at::Tensor& dy, const at::Tensor& x, at::Tensor dweight,
                     GradientSum sum = GradientSum::continues);

/// The same in FP8: each operand in the orientation that its GEMM reads, whose summed axis is the last one.
/// Results in `type`, or in the dtype of the tensor that is added to. `fast_accumulation`:
/// impl/ops/gemm/cuda_gemm.hpp. Errors as above, and SpecError quantise_c3 (extents that the recipe's GEMMs
/// do not take), UserError(usage) (impl/ops/gemm/fp8_gemm.hpp).
using quantise::Quantised;

/// x [N, in], weight [out, in].
at::Tensor forward(const Quantised& x, const Quantised& weight, at::ScalarType type,
                   const at::Tensor& bias = {}, bool fast_accumulation = false);
at::Tensor forward_residual(const at::Tensor& residual, const Quantised& x, const Quantised& weight,
                            bool fast_accumulation = false);
/// dy [N, out], weight_columns [in, out], the weight's transpose.
at::Tensor backward_input(const Quantised& dy, const Quantised& weight_columns, at::ScalarType type,
                          bool fast_accumulation = false);
/// dy_columns [out, N], x_columns [in, N], the transposes of dy and x.
void backward_weight(const Quantised& dy_columns, const Quantised& x_columns, at::Tensor dweight,
                     GradientSum sum = GradientSum::continues, bool fast_accumulation = false);

}  // namespace assay::impl::linear
