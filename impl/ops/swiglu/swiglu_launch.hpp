#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "impl/ops/forward_value.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::impl::swiglu::cuda {

using spec::swiglu::Activation;

/// The weights of rows (RowWeights of swiglu.hpp), fp32 or fp64; `gradients` is written by backward.
struct RowPointers {
  const void* values;
  const std::int32_t* slots;
  void* gradients;
};

/// Device pointers of impl/ops/swiglu/swiglu.hpp: gate_up [N, 2F], y and dy [N, F], rows contiguous, one
/// dtype; `weights` null: each row counts 1. Backward writes over gate_up, and over dy where the value is
/// asked for again.
ASSAY_KERNEL void launch_forward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F,
                                 const void* gate_up, void* y, const RowPointers* weights,
                                 cudaStream_t stream);
ASSAY_KERNEL void launch_backward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F,
                                  void* dy, void* gate_up, ForwardValue value, const RowPointers* weights,
                                  cudaStream_t stream);

}  // namespace assay::impl::swiglu::cuda
