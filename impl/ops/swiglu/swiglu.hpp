#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/forward_value.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::impl::swiglu {

using spec::swiglu::Activation;

/// silu(gate) * up, or gelu(gate) * up. [spec/ops/swiglu/swiglu.md] Shapes: gate_up [N, 2F] contiguous, gate
/// in columns [0, F), up in [F, 2F) -> [N, F].
at::Tensor forward(const at::Tensor& gate_up, Activation activation);

/// Gradient of gate and up, written over gate_up (its values are not needed again) and returned. dy [N, F]
/// becomes the value of forward, which is then at hand without having been kept, or stays where it was kept.
at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation,
                    ForwardValue value = ForwardValue::again);

/// A weight for each row, as a router gives them (spec/ops/router/router.md): row r's is values[slots[r]].
struct RowWeights {
  at::Tensor values;  ///< any shape of at least N entries, fp32 or fp64 (math_type)
  at::Tensor slots;   ///< [N] int32, places of `values`, none of them twice
};

/// The same, each row times its weight.
at::Tensor forward_weighted(const at::Tensor& gate_up, Activation activation, const RowWeights& weights);

/// As backward, of the weighted rows: `dy` becomes the weighted value. Returns the gradient of gate and up;
/// dweights, of the shape of weights.values, becomes that of the weights.
at::Tensor backward_weighted(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value,
                             const RowWeights& weights, at::Tensor dweights);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
decltype(swiglu::forward_weighted) forward_weighted;
decltype(swiglu::backward_weighted) backward_weighted;
}  // namespace cpu
namespace cuda {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
decltype(swiglu::forward_weighted) forward_weighted;
decltype(swiglu::backward_weighted) backward_weighted;
}  // namespace cuda
namespace aten {
decltype(swiglu::forward) forward;
decltype(swiglu::backward) backward;
}  // namespace aten

}  // namespace assay::impl::swiglu
