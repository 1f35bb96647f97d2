#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::qk_norm::cuda {

/// qkv [N, heads + 2 kv_heads, E], rstd [N, heads + kv_heads], gains [E], the table of angles [positions,
/// E/2]; `positions` [N] or null, then token n has position n mod T. Gains, their gradients, statistics,
/// angles and sums are fp32 for bf16, else of `dtype`.
struct Arguments {
  Dtype dtype;
  std::int64_t N, T, heads, kv_heads, E;
  const void *qkv, *q_gain, *k_gain, *cosine, *sine;
  const std::int32_t* positions;
};

/// y = qkv, its query and key heads normalised and turned; y [N, heads + 2 kv_heads, E].
void launch_forward(const Arguments& a, double eps, void* y, void* rstd, cudaStream_t stream);

/// The query and key heads of dqkv become the gradient of their input; dq_gain, dk_gain [E] += theirs.
/// `partial` [partial_rows, E] is scratch.
void launch_backward(const Arguments& a, void* dqkv, const void* rstd, void* partial, void* dq_gain,
                     void* dk_gain, cudaStream_t stream);

inline constexpr std::int64_t partial_rows = 528, longest_head = 256;

}  // namespace assay::impl::qk_norm::cuda
