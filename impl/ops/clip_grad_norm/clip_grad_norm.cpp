#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"

namespace assay::impl::clip_grad_norm {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  const metrics::OpScope timed(spec::time::StepOp::clip_grad_norm, spec::time::StepPass::update);
  check_contiguous("clip_grad_norm", {gradient});
  return gradient.is_cpu() ? cpu::sum_of_squares(gradient) : cuda::sum_of_squares(gradient);
}

double coefficient(double norm, double max_norm) { return spec::clip_grad_norm::coefficient(norm, max_norm); }

at::Tensor norm_and_coefficient(const at::Tensor& sum, const at::Tensor& losses, double max_norm) {
  const metrics::OpScope timed(spec::time::StepOp::clip_grad_norm, spec::time::StepPass::update);
  constexpr double not_finite = std::numeric_limits<double>::quiet_NaN();
  if (max_norm != 0) coefficient(0, max_norm);  // checks max_norm
  if (sum.is_cpu()) {
    const double norm = std::sqrt(sum.item<double>());
    const bool finite = std::isfinite(norm + losses.sum().item<double>());
    const double limited = finite && max_norm != 0 ? coefficient(norm, max_norm) : 1;
    return at::tensor({norm, finite ? limited : not_finite}, at::kDouble);
  }
  // The operations of spec::clip_grad_norm::coefficient; ATen's number / tensor would take a reciprocal
  // instead.
  const at::Tensor norm = sum.sqrt();
  const at::Tensor limited =
      max_norm == 0 ? at::ones_like(norm) : at::full_like(norm, max_norm).div_(norm + 1e-6).clamp_max_(1.0);
  const at::Tensor finite = at::isfinite(norm + losses.sum());
  return at::stack({norm, at::where(finite, limited, not_finite)});
}

namespace aten {
at::Tensor sum_of_squares(const at::Tensor& gradient) {
  return at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble).square_();
}
}  // namespace aten

}  // namespace assay::impl::clip_grad_norm
