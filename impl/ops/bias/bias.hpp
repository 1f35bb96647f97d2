#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::bias {

/// dbias += sum of dy over its rows; forward is the GEMM's (linear::forward). [spec/ops/bias/bias.md] Shapes:
/// dy [N, out] contiguous, dbias [out] in the statistics' dtype (fp32 for bf16 dy). The sum over rows has a
/// fixed order, independent of the number of threads. Errors: SpecError bias_c1, bias_c2.
void backward(const at::Tensor& dy, at::Tensor dbias);

/// The implementations behind it, of the same meaning, arguments unchecked: `cpu` are loops for CPU tensors,
/// `cuda` our kernels for CUDA tensors, `aten` is written in ATen calls and runs on any device.
namespace cpu {
decltype(bias::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(bias::backward) backward;
}  // namespace cuda
namespace aten {
decltype(bias::backward) backward;
}  // namespace aten

}  // namespace assay::impl::bias
