#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/forward_value.hpp"
#include "spec/ops/gate_activation.hpp"

namespace assay::impl::swiglu {

using spec::swiglu::Activation;

/// silu(gate) * up, or gelu(gate) * up.                                              [spec/ops/swiglu.md]
/// Shapes: gate_up [N, 2F] contiguous, gate in columns [0, F), up in [F, 2F) -> [N, F].
at::Tensor forward(const at::Tensor& gate_up, Activation activation);

/// Gradient of gate and up, written over gate_up (its values are not needed again) and returned. dy [N, F]
/// becomes the value of forward, which is then at hand without having been kept, or stays where it was kept.
at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation,
                    ForwardValue value = ForwardValue::again);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
}  // namespace cuda
namespace aten {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
}  // namespace aten

}  // namespace assay::impl::swiglu
