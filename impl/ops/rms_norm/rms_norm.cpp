#include "impl/ops/rms_norm/rms_norm.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"

namespace assay::impl::rms_norm {

namespace {
void check(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const std::int64_t D = x.size(-1);
  spec::rms_norm::check({.N = D ? x.numel() / D : 0, .D = D}, gain.numel(), eps);
}

at::Tensor to_math(const at::Tensor& x) { return x.to(math_type(x.scalar_type())); }
}  // namespace

Forward forward(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const metrics::OpScope timed(spec::time::StepOp::rms_norm, spec::time::StepPass::forward);
  check(x, gain, eps);
  check_contiguous("rms_norm", {x, gain});
  check_statistic("rms_norm", x, {gain});
  return x.is_cpu() ? cpu::forward(x, gain, eps) : cuda::forward(x, gain, eps);
}

Forward forward_of_sum(at::Tensor x, const at::Tensor& residual, const at::Tensor& gain, double eps) {
  const metrics::OpScope timed(spec::time::StepOp::rms_norm, spec::time::StepPass::forward);
  check(x, gain, eps);
  check_contiguous("rms_norm", {x, residual, gain});
  check_statistic("rms_norm", x, {gain});
  TORCH_CHECK(residual.sizes() == x.sizes() && residual.scalar_type() == x.scalar_type(),
              "rms_norm: the residual has another shape or type than x");
  return x.is_cpu() ? cpu::forward_of_sum(x, residual, gain, eps)
                    : cuda::forward_of_sum(x, residual, gain, eps);
}

void backward(at::Tensor dy, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
              const at::Tensor& residual, at::Tensor dx, at::Tensor dgain, ForwardValue value) {
  const metrics::OpScope timed(spec::time::StepOp::rms_norm, spec::time::StepPass::backward);
  check(x, gain, 1);
  check_contiguous("rms_norm", {dy, x, gain, rstd, residual, dx, dgain});
  check_statistic("rms_norm", x, {gain, dgain});
  return x.is_cpu() ? cpu::backward(dy, x, gain, rstd, residual, dx, dgain, value)
                    : cuda::backward(dy, x, gain, rstd, residual, dx, dgain, value);
}

namespace aten {
Forward forward(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const at::Tensor wide = to_math(x);
  const at::Tensor rstd = wide.square().mean(-1).add_(eps).rsqrt_();
  return {(wide * rstd.unsqueeze(-1)).mul_(gain).to(x.scalar_type()), rstd.flatten()};
}

Forward forward_of_sum(at::Tensor x, const at::Tensor& residual, const at::Tensor& gain, double eps) {
  return forward(x.add_(residual), gain, eps);
}

void backward(at::Tensor dy, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
              const at::Tensor& residual, at::Tensor dx, at::Tensor dgain, ForwardValue value) {
  const std::int64_t D = x.size(-1);
  const at::Tensor scale = rstd.reshape({-1, 1}), upstream = to_math(dy).reshape({-1, D});
  const at::Tensor xhat = to_math(x).reshape({-1, D}) * scale, dxhat = upstream * gain;
  dgain.add_((upstream * xhat).sum(0));
  const at::Tensor projection = (dxhat * xhat).mean(-1, true);
  at::add_out(dx, residual, (dxhat - xhat * projection).mul_(scale).view_as(dx));
  if (value == ForwardValue::again) dy.copy_((xhat * gain).view_as(dy));
}
}  // namespace aten

}  // namespace assay::impl::rms_norm
