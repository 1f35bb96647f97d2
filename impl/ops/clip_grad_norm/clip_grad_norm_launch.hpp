#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::clip_grad_norm::cuda {

/// Partial sums that a gradient of any length is cut into: fixed, so that the order of the sum is the same on
/// every device.
inline constexpr int partials = 1024;

/// sum[0] = sum of squares of gradient [n], in fp64. `partial` [partials] fp64 is scratch.
ASSAY_KERNEL void launch_sum_of_squares(Dtype dtype, std::int64_t n, const void* gradient, double* partial,
                                        double* sum, cudaStream_t stream);

}  // namespace assay::impl::clip_grad_norm::cuda
