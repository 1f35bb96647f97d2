#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::clip_grad_norm {

/// Sum of squares of a flat gradient, in fp64, in a fixed order that does not depend on the number of
/// threads. gradient [n] -> fp64 scalar tensor on the gradient's device. [spec/ops/clip_grad_norm.md]
at::Tensor sum_of_squares(const at::Tensor& gradient);

/// min(1, max_norm / (norm + 1e-6)).
/// Errors: SpecError clip_grad_norm_c1 (max_norm not > 0 and finite), clip_grad_norm_c2 (norm not finite).
double coefficient(double norm, double max_norm);

/// The two implementations behind sum_of_squares, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `aten` is written in ATen calls and runs on any device.
namespace cpu {
decltype(clip_grad_norm::sum_of_squares) sum_of_squares;
}  // namespace cpu
namespace aten {
decltype(clip_grad_norm::sum_of_squares) sum_of_squares;
}  // namespace aten

}  // namespace assay::impl::clip_grad_norm
