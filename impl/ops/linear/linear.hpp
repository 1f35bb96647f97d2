#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::linear {

/// y = x W^T, + bias where there is one, added in the GEMM's write-back.            [spec/ops/linear.md]
/// Shapes: x [N, in], weight [out, in], bias [out] or undefined -> y [N, out]; one dtype.
/// Errors: SpecError linear_c1 (inner extents differ), bias_c1 (bias of another size). Same meaning of N, in,
/// out in every function here.
at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

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

}  // namespace assay::impl::linear
