#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::qk_norm::cuda {

/// qkv [N, heads + 2 kv_heads, E]; rstd [N, heads + kv_heads] and gains [E], `across_heads` rstd [N, 2] and
/// gains [heads E] and [kv_heads E]; the table of angles [positions, E/2]; `positions` [N] or null, then
/// token n has position n mod T. Gains, their gradients, statistics, angles and sums are fp32 for bf16, else
/// of `dtype`.
struct Arguments {
  Dtype dtype;
  std::int64_t N, T, heads, kv_heads, E;
  bool across_heads;
  const void *qkv, *q_gain, *k_gain, *cosine, *sine;
  const std::int32_t* positions;
};

/// y = qkv, its query and key heads normalised and turned; y [N, heads + 2 kv_heads, E].
ASSAY_KERNEL void launch_forward(const Arguments& a, double eps, void* y, void* rstd, cudaStream_t stream);

/// The query and key heads of dqkv become the gradient of their input; dq_gain, dk_gain += theirs. `partial`
/// is scratch: [head_partial_rows, E], across heads [token_partial_rows, (heads + kv_heads) E].
ASSAY_KERNEL void launch_backward(const Arguments& a, void* dqkv, const void* rstd, void* partial,
                                  void* dq_gain, void* dk_gain, cudaStream_t stream);

/// Whether there is a kernel: heads of at most 256 entries; across heads the query and key heads of a token
/// have to fit one block, 64 heads of 128 bf16 entries. `values` is y or dqkv.
ASSAY_KERNEL bool fits(const Arguments& a, const void* values);

inline constexpr std::int64_t head_partial_rows = 528, token_partial_rows = 264;

}  // namespace assay::impl::qk_norm::cuda
