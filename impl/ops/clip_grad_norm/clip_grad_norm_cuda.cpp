#include <ATen/ATen.h>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/ops/clip_grad_norm/clip_grad_norm_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"

namespace assay::impl::clip_grad_norm::cuda {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  const auto exact = gradient.options().dtype(at::kDouble);
  const at::Tensor partial = at::empty({partials}, exact);
  at::Tensor sum = at::empty({}, exact);
  launch_sum_of_squares(impl::cuda::dtype_of(gradient), gradient.numel(), gradient.const_data_ptr(),
                        partial.data_ptr<double>(), sum.data_ptr<double>(), impl::cuda::stream());
  return sum;
}

}  // namespace assay::impl::clip_grad_norm::cuda
