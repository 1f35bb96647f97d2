#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/forward_value.hpp"

namespace assay::impl::rms_norm {

struct Forward {
  at::Tensor y;     ///< shape and dtype of x
  at::Tensor rstd;  ///< [N], fp32 for bf16 x, else dtype of x
};

/// RMS normalisation over the last axis. [spec/ops/rms_norm/rms_norm.md] Shapes: x [N, D] contiguous, gain
/// [D]. Statistics and gain in fp32 for bf16 x, else in x's dtype. Errors: SpecError rms_norm_c1,
/// rms_norm_c2, rms_norm_c3.
Forward forward(const at::Tensor& x, const at::Tensor& gain, double eps);

/// forward of x + residual, which x becomes. residual: as x.
Forward forward_of_sum(at::Tensor x, const at::Tensor& residual, const at::Tensor& gain, double eps);

/// dx = residual + gradient of the input, dgain += gradient of the gain. In a pre-norm block `residual` is
/// the residual's gradient, so that its addition costs no pass of its own; dx may be its memory. dy becomes
/// forward's y, which the gradient of the weights behind the norm asks for and which is then at hand without
/// having been kept, or stays. Shapes: dy, x, residual, dx [N, D], rstd [N], gain and dgain [D] in the
/// statistics' dtype. The sum over rows has a fixed order, independent of the number of threads.
void backward(at::Tensor dy, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
              const at::Tensor& residual, at::Tensor dx, at::Tensor dgain,
              ForwardValue value = ForwardValue::again);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(rms_norm::forward) forward;
decltype(rms_norm::forward_of_sum) forward_of_sum;
decltype(rms_norm::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(rms_norm::forward) forward;
decltype(rms_norm::forward_of_sum) forward_of_sum;
decltype(rms_norm::backward) backward;
}  // namespace cuda
namespace aten {
decltype(rms_norm::forward) forward;
decltype(rms_norm::forward_of_sum) forward_of_sum;
decltype(rms_norm::backward) backward;
}  // namespace aten

}  // namespace assay::impl::rms_norm
