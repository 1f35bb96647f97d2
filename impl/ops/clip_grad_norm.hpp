#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::clip_grad_norm {

/// Sum of squares of a flat gradient, in fp64, in a fixed order that does not depend on the number of threads.
/// gradient [n] -> fp64 scalar tensor on the gradient's device.                       [spec/ops/clip_grad_norm.md]
at::Tensor sum_of_squares(const at::Tensor& gradient);

/// min(1, max_norm / (norm + 1e-6)). Errors: SpecError clip_grad_norm_c1.. (max_norm not > 0, norm not finite).
double coefficient(double norm, double max_norm);

}  // namespace assay::impl::clip_grad_norm
