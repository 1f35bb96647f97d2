#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/rms_norm/rms_norm_launch.hpp"

namespace assay::impl::rms_norm::cuda {

using impl::cuda::dtype_of;
using impl::cuda::math_type;
using impl::cuda::stream;

namespace {
/// `sum`: the storage of x, which the residual is added to, or undefined where there is none.
Forward normed(const at::Tensor& x, at::Tensor sum, const at::Tensor& residual, const at::Tensor& gain,
               double eps) {
  const std::int64_t D = x.size(-1), N = x.numel() / D;
  Forward out{at::empty_like(x), at::empty({N}, x.options().dtype(math_type(x.scalar_type())))};
  launch_forward({.dtype = dtype_of(x),
                  .N = N,
                  .D = D,
                  .eps = eps,
                  .x = x.const_data_ptr(),
                  .gain = gain.const_data_ptr(),
                  .residual = sum.defined() ? residual.const_data_ptr() : nullptr,
                  .sum = sum.defined() ? sum.data_ptr() : nullptr,
                  .y = out.y.data_ptr(),
                  .rstd = out.rstd.data_ptr()},
                 stream());
  return out;
}
}  // namespace

Forward forward(const at::Tensor& x, const at::Tensor& gain, double eps) {
  return normed(x, {}, {}, gain, eps);
}

Forward forward_of_sum(at::Tensor x, const at::Tensor& residual, const at::Tensor& gain, double eps) {
  return normed(x, x, residual, gain, eps);
}

void backward(at::Tensor dy, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
              const at::Tensor& residual, at::Tensor dx, at::Tensor dgain, ForwardValue value) {
  const std::int64_t D = x.size(-1), N = rstd.numel();
  const at::Tensor partial = at::empty({partial_rows(N), D}, rstd.options());
  const BackwardArguments arguments{.dtype = dtype_of(x),
                                    .N = N,
                                    .D = D,
                                    .dy = dy.data_ptr(),
                                    .x = x.const_data_ptr(),
                                    .gain = gain.const_data_ptr(),
                                    .rstd = rstd.const_data_ptr(),
                                    .residual = residual.const_data_ptr(),
                                    .dx = dx.data_ptr(),
                                    .dgain = dgain.data_ptr(),
                                    .partial = partial.data_ptr(),
                                    .value = value};
  if (!fits(arguments)) return aten::backward(dy, x, gain, rstd, residual, dx, dgain, value);
  launch_backward(arguments, stream());
}

}  // namespace assay::impl::rms_norm::cuda
