#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::qk_norm::cuda {

/// Heads [first, first + count) of qkv [N, all, E] share a gain [E]; rstd [N, normed], entry (n, h) of head
/// h. Gains, their gradients, statistics and sums are fp32 for bf16, else of `dtype`.
struct Heads {
  Dtype dtype;
  std::int64_t N, all, normed, first, count, E;
};

/// y = qkv normalised, in those heads; y [N, all, E].
void launch_forward(const Heads& heads, double eps, const void* qkv, const void* gain, void* y, void* rstd,
                    cudaStream_t stream);

/// dqkv in those heads becomes the gradient of their input; dgain [E] += its. `partial` [partial_rows, E] is
/// scratch.
void launch_backward(const Heads& heads, void* dqkv, const void* qkv, const void* gain, const void* rstd,
                     void* partial, void* dgain, cudaStream_t stream);

inline constexpr std::int64_t partial_rows = 528, longest_head = 256;

}  // namespace assay::impl::qk_norm::cuda
