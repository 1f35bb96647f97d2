#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "impl/ops/forward_value.hpp"
#include "spec/ops/gate_activation.hpp"

namespace assay::impl::swiglu::cuda {

using spec::swiglu::Activation;

/// Device pointers of impl/ops/swiglu/swiglu.hpp: gate_up [N, 2F], y and dy [N, F], rows contiguous, one
/// dtype. Backward writes over gate_up, and over dy where the value is asked for again.
void launch_forward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, const void* gate_up,
                    void* y, cudaStream_t stream);
void launch_backward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, void* dy,
                     void* gate_up, ForwardValue value, cudaStream_t stream);

}  // namespace assay::impl::swiglu::cuda
