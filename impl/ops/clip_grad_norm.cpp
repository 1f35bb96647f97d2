#include "impl/ops/clip_grad_norm.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "spec/error.hpp"

namespace assay::impl::clip_grad_norm {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  return gradient.is_cpu() ? cpu::sum_of_squares(gradient) : aten::sum_of_squares(gradient);
}

double coefficient(double norm, double max_norm) {
  require(max_norm > 0, "clip_grad_norm_c1", [&] { return "max_norm=" + std::to_string(max_norm); });
  require(std::isfinite(norm) && norm >= 0, "clip_grad_norm_c2",
          [&] { return "norm=" + std::to_string(norm); });
  return std::min(1.0, max_norm / (norm + 1e-6));
}

namespace aten {
at::Tensor sum_of_squares(const at::Tensor& gradient) {
  return at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble).square_();
}
}  // namespace aten

}  // namespace assay::impl::clip_grad_norm
