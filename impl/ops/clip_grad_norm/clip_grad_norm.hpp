#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::clip_grad_norm {

/// Sum of squares of a flat gradient, in fp64, in a fixed order that does not depend on the number of
/// threads. gradient [n] -> fp64 scalar tensor on the gradient's device.
/// [spec/ops/clip_grad_norm/clip_grad_norm.md]
at::Tensor sum_of_squares(const at::Tensor& gradient);

/// min(1, max_norm / (norm + 1e-6)).
/// Errors: SpecError clip_grad_norm_c1 (max_norm not > 0 and finite), clip_grad_norm_c2 (norm not finite).
double coefficient(double norm, double max_norm);

/// What the update needs, decided where the numbers are, so that nothing waits for the host: [2] fp64
/// {gradient norm, coefficient}. The coefficient is `coefficient(norm, max_norm)`, 1 where max_norm is 0 (no
/// clipping), and NaN where the norm or a loss is not finite: adamw then leaves everything as it is. `sum` as
/// returned by sum_of_squares, losses any fp64 tensor beside it.
at::Tensor norm_and_coefficient(const at::Tensor& sum, const at::Tensor& losses, double max_norm);

/// The implementations behind sum_of_squares, of the same meaning, arguments unchecked: `cpu` are fused loops
/// for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen calls
/// and runs on any device.
namespace cpu {
decltype(clip_grad_norm::sum_of_squares) sum_of_squares;
}  // namespace cpu
namespace cuda {
decltype(clip_grad_norm::sum_of_squares) sum_of_squares;
}  // namespace cuda
namespace aten {
decltype(clip_grad_norm::sum_of_squares) sum_of_squares;
}  // namespace aten

}  // namespace assay::impl::clip_grad_norm
