#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/rope/rope.hpp"

namespace assay::impl::qk_norm {

struct Forward {
  at::Tensor qkv;   ///< [B, T, H + 2K, E]: q and k heads normalised and turned, v heads as given
  at::Tensor rstd;  ///< [B, T, H + K], across heads [B, T, 2]; fp32 for bf16, else dtype of qkv
};

/// rms_norm of queries (gain q_gain) and keys (gain k_gain), then rope::rotate of both; on a GPU in one pass
/// over memory, without a rounding between the two. [spec/ops/qk_norm/qk_norm.md] Shapes: qkv [B, T, H + 2K,
/// E] contiguous, heads ordered q | k | v; q_gain, k_gain of rstd's dtype, [E] for a norm of every head, [H
/// E] and [K E] for one across heads; `heads` = H, `kv_heads` = K; `table`, `positions` as rope::rotate.
/// Errors: SpecError qk_norm_c1.., rope_c1..
Forward forward_rope(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                     std::int64_t heads, std::int64_t kv_heads, double eps, const rope::Table& table,
                     const at::Tensor& positions);

/// Turns dqkv (gradient of forward_rope's qkv) into the gradient of its input, in place; dq_gain, dk_gain +=
/// theirs. `qkv` is the input of forward_rope.
void backward_rope(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                   const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
                   at::Tensor dk_gain, const rope::Table& table, const at::Tensor& positions);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device. `cpu` is followed, in backward preceded, by rope's own loops.
namespace cpu {
Forward forward(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
                std::int64_t kv_heads, double eps);
void backward(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
              const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
              at::Tensor dk_gain);
}  // namespace cpu
namespace cuda {
decltype(qk_norm::forward_rope) forward_rope;
decltype(qk_norm::backward_rope) backward_rope;
}  // namespace cuda
namespace aten {
decltype(qk_norm::forward_rope) forward_rope;
decltype(qk_norm::backward_rope) backward_rope;
}  // namespace aten

}  // namespace assay::impl::qk_norm
