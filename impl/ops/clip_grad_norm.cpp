#include "impl/ops/clip_grad_norm.hpp"

#include <ATen/ATen.h>

#include "impl/ops/tensor_check.hpp"
#include "spec/ops/clip_grad_norm.hpp"

namespace assay::impl::clip_grad_norm {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  check_contiguous("clip_grad_norm", {gradient});
  return gradient.is_cpu() ? cpu::sum_of_squares(gradient) : aten::sum_of_squares(gradient);
}

double coefficient(double norm, double max_norm) { return spec::clip_grad_norm::coefficient(norm, max_norm); }

namespace aten {
at::Tensor sum_of_squares(const at::Tensor& gradient) {
  return at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble).square_();
}
}  // namespace aten

}  // namespace assay::impl::clip_grad_norm
